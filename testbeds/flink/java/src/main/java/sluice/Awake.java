package sluice;

import java.io.IOException;

/** Spins on every processor until its standard input ends, together with the process that started it. */
public final class Awake {
    private Awake() {}

    /** Begins with the first byte of input, so that the parent process can first set the priority that threads inherit. */
    public static void main(String[] args) throws IOException {
        if (System.in.read() < 0) {
            return;
        }
        for (int i = 0; i < Runtime.getRuntime().availableProcessors(); i++) {
            Thread thread = new Thread(Awake::spin, "sluice-awake-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        while (System.in.read() >= 0) {
            // Only the end of the input matters.
        }
    }

    private static void spin() {
        while (true) {
            Thread.onSpinWait();
        }
    }
}
