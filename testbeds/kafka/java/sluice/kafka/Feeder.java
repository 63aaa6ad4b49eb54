package sluice.kafka;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import sluice.source.Control;

/** Feeds topics at the rates that a server orders; the protocol is that of {@link sluice.source.Order}. */
public final class Feeder {
    private static final Map<String, Object> PRODUCER = Map.of(
            "linger.ms", 5,
            "batch.size", 1 << 17,
            "buffer.memory", 1L << 26,
            // A broker that comes back within five minutes is waited for.
            "max.block.ms", 300_000,
            "delivery.timeout.ms", 300_000);
    private static final CountDownLatch ENDED = new CountDownLatch(1);
    private static volatile Throwable failure;

    private Feeder() {}

    /**
     * @param args address of the control server, file of the producers' settings, file with a line for each feed:
     *     {@code NAME generate TOPIC PARTITIONS KEYS EXPONENT VALUE_BYTES SEED} or
     *     {@code NAME replay FILE_URI now|recorded PERIOD_MS}, followed by {@code TOPIC PARTITIONS by-key|as-recorded} for each
     *     topic of the file
     */
    public static void main(String[] args) throws Throwable {
        Properties settings = new Properties();
        settings.putAll(PRODUCER);
        try (InputStream file = Files.newInputStream(Path.of(args[1]))) {
            settings.load(file);
        }
        for (String line : Files.readAllLines(Path.of(args[2]), StandardCharsets.UTF_8)) {
            start(line.split(" "), args[0], settings);
        }
        ENDED.await();
        throw failure;
    }

    private static void start(String[] words, String control, Properties settings) throws IOException {
        Records records = records(words);
        Thread thread = new Thread(() -> run(records, words[0], control, settings), "sluice-feed-" + words[0]);
        thread.setDaemon(true);
        thread.start();
    }

    private static void run(Records records, String name, String control, Properties settings) {
        try (Producer<byte[], byte[]> producer =
                        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
                Feed feed = new Feed(records, producer, new Control(control, name, 0, 1))) {
            feed.run();
        } catch (Throwable error) {
            failure = error;
            ENDED.countDown();
        }
    }

    private static Records records(String[] words) throws IOException {
        if (words.length == 8 && words[1].equals("generate")) {
            return new GeneratedRecords(words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]),
                    Double.parseDouble(words[5]), Integer.parseInt(words[6]), Long.parseLong(words[7]));
        }
        if (words.length > 5 && words.length % 3 == 2 && words[1].equals("replay")) {
            ReplayedRecords.Target[] targets = new ReplayedRecords.Target[(words.length - 5) / 3];
            for (int i = 0; i < targets.length; i++) {
                int at = 5 + 3 * i;
                targets[i] = new ReplayedRecords.Target(
                        words[at], Integer.parseInt(words[at + 1]), words[at + 2].equals("as-recorded"));
            }
            return new ReplayedRecords(
                    Path.of(URI.create(words[2])), words[3].equals("recorded"), Long.parseLong(words[4]), targets);
        }
        throw new IOException("a feed must be 'generate' or 'replay' with its words, but got " + String.join(" ", words));
    }
}
