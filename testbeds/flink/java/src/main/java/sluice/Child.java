package sluice;

import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;

/**
 * Runs a main class, and ends the JVM when its parent process is gone, even if that was killed: the system then gives this
 * process another parent.
 */
public final class Child {
    private static final long LOOK_EVERY_MS = 250;
    private static final int ORPHANED = 86;

    private Child() {}

    /** @param args process id of the parent, main class, arguments of the main class */
    public static void main(String[] args) throws Throwable {
        long parent = Long.parseLong(args[0]);
        Thread watch = new Thread(() -> endWithParent(parent), "sluice-parent-watch");
        watch.setDaemon(true);
        watch.start();
        try {
            Class.forName(args[1]).getMethod("main", String[].class)
                    .invoke(null, (Object) Arrays.copyOfRange(args, 2, args.length));
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    private static void endWithParent(long parent) {
        while (ProcessHandle.current().parent().filter(now -> now.pid() == parent).isPresent()) {
            try {
                Thread.sleep(LOOK_EVERY_MS);
            } catch (InterruptedException ignored) {
                // No other thread interrupts this one; check again at once.
            }
        }
        Runtime.getRuntime().halt(ORPHANED);
    }
}
