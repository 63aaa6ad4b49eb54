package sluice.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ControlTest {
    @Test
    void aTaskFollowsOrdersReportsAndConnectsAgain() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
                Control control = new Control("127.0.0.1:" + server.getLocalPort(), "my bids", 2, 4)) {
            server.setSoTimeout(10_000);
            try (Socket task = server.accept()) {
                assertEquals("source 2 4 my bids", reader(task).readLine());
                send(task, "rate a 500");
                awaitRate(control, 500);
                control.report("a 1.0 500 0 500");
                BufferedReader in = reader(task);
                String line = in.readLine();
                assertTrue(line.startsWith("at "), line);
            }
            awaitRate(control, 0);
            try (Socket again = server.accept()) {
                assertEquals("source 2 4 my bids", reader(again).readLine());
                send(again, "faster");
                awaitFailure(control, "faster");
            }
        }
    }

    @Test
    void aTaskWhoseLeaseHasExpiredFails() throws Exception {
        Control leased;
        try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
            leased = new Control("127.0.0.1:" + server.getLocalPort(), "bids", 0, 1);
            try (Socket task = server.accept()) {
                send(task, "lease 0.05");
                send(task, "rate a 500");
                awaitRate(leased, 500);
            }
        }
        awaitFailure(leased, "no controller");
        leased.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"nowhere", ":80", "host:", "host:http", "host:65536", "host:-1"})
    void anAddressWithoutAPortIsRefused(String address) {
        String message = assertThrows(IllegalArgumentException.class, () -> new Control(address, "bids", 0, 1)).getMessage();
        assertTrue(message.contains("must be HOST:PORT") && message.contains("but got '" + address + "'; give"), message);
    }

    private static BufferedReader reader(Socket socket) throws IOException {
        return new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
    }

    private static void send(Socket socket, String line) throws IOException {
        socket.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
    }

    private static void awaitRate(Control control, double rate) throws InterruptedException {
        for (int i = 0; i < 1000 && control.order().recordsPerSecond != rate; i++) {
            Thread.sleep(10);
        }
        assertEquals(rate, control.order().recordsPerSecond);
    }

    private static void awaitFailure(Control control, String word) throws InterruptedException {
        for (int i = 0; i < 1000; i++) {
            try {
                control.order();
            } catch (IllegalStateException expected) {
                assertTrue(expected.getMessage().contains(word), expected.getMessage());
                return;
            }
            Thread.sleep(10);
        }
        fail("it did not fail: " + word);
    }
}
