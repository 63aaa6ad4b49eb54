package sluice.source;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The connection of one task to the server that sets the rates. The task introduces itself ({@code source SUBTASK TASKS
 * NAME}, whose name may have blanks), receives orders, and reports its progress ({@code at} and the words of
 * {@link Pace#report}) every REPORT_MS. Without a connection it emits nothing, so that a job whose controller died does
 * not continue; and if a lease was given ({@code lease SECONDS}), the task fails after that time without a connection, so
 * that the job frees its slots.
 */
public final class Control implements AutoCloseable {
    private static final Pattern ADDRESS = Pattern.compile("(.+):(\\d{1,5})");
    private static final int MOST_PORT = 65535;
    private static final String LEASE = "lease ";
    private static final long REPORT_MS = 200;
    private static final int TIMEOUT_MS = 5000;
    private static final long RETRY_MS = 200;

    private final String host;
    private final int port;
    private final String greeting;
    private final Thread thread;
    private volatile Order order = Order.none();
    private volatile String report = "none 0 0 0 0";
    private volatile Socket socket;
    private volatile boolean closed;
    private volatile boolean lost;
    private volatile long lostNanos;
    private volatile long leaseNanos;
    private volatile IllegalArgumentException misunderstood;

    /** @param address host:port */
    public Control(String address, String source, int subtask, int tasks) {
        Matcher parts = ADDRESS.matcher(address);
        if (!parts.matches() || Integer.parseInt(parts.group(2)) > MOST_PORT) {
            throw new IllegalArgumentException("'control' must be HOST:PORT with a port of at most " + MOST_PORT
                    + ", but got '" + address + "'; give the address of the server that sets the rates");
        }
        host = parts.group(1);
        port = Integer.parseInt(parts.group(2));
        greeting = "source " + subtask + " " + tasks + " " + source + "\n";
        thread = new Thread(this::keepConnected, "sluice-control-" + source + "-" + subtask);
        thread.setDaemon(true);
        thread.start();
    }

    /** The order in force; an invalid line fails the task, and so does an expired lease. */
    public Order order() {
        if (lost && leaseNanos > 0 && System.nanoTime() - lostNanos > leaseNanos) {
            throw new IllegalStateException("no controller at " + host + ":" + port + " has set the rate for "
                    + leaseNanos / 1e9 + " s; the measurement of this job has ended");
        }
        if (misunderstood != null) {
            throw new IllegalStateException(misunderstood.getMessage(), misunderstood);
        }
        return order;
    }

    public void report(String now) {
        report = now;
    }

    private void keepConnected() {
        while (!closed) {
            try (Socket connected = new Socket()) {
                socket = connected;
                connected.connect(new InetSocketAddress(host, port), TIMEOUT_MS);
                lost = false;
                talk(connected);
            } catch (IOException ended) {
                // Refused or cut off: try again, since the controller may come back.
            }
            order = Order.none();
            pause(RETRY_MS);
        }
    }

    /** Until the other side closes. */
    private void talk(Socket connected) throws IOException {
        connected.setTcpNoDelay(true);
        OutputStream out = connected.getOutputStream();
        out.write(greeting.getBytes(StandardCharsets.UTF_8));
        BufferedReader in =
                new BufferedReader(new InputStreamReader(connected.getInputStream(), StandardCharsets.UTF_8));
        Thread reports = new Thread(() -> sendReports(out), thread.getName() + "-reports");
        reports.setDaemon(true);
        reports.start();
        try {
            for (String line = in.readLine(); line != null && !closed; line = in.readLine()) {
                if (line.startsWith(LEASE)) {
                    leaseNanos = (long) (1e9 * Double.parseDouble(line.substring(LEASE.length())));
                } else {
                    order = Order.parse(line);
                }
            }
        } catch (IllegalArgumentException error) {
            misunderstood = error;
            closed = true;
        } finally {
            reports.interrupt();
            lostNanos = System.nanoTime();
            lost = true;
        }
    }

    private void sendReports(OutputStream out) {
        try {
            while (!closed && pause(REPORT_MS)) {
                out.write(("at " + report + "\n").getBytes(StandardCharsets.UTF_8));
            }
        } catch (IOException ended) {
            // The reader notices the failure, too, and connects again.
        }
    }

    private static boolean pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
            return true;
        } catch (InterruptedException stop) {
            return false;
        }
    }

    @Override
    public void close() throws IOException {
        closed = true;
        if (socket != null) {
            socket.close();
        }
        thread.interrupt();
    }
}
