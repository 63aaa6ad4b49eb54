package sluice.dataflow;

/**
 * CPU time that the tasks of one TaskManager share: they are served in turn, as if there were exactly CORES processors. So
 * tasks contend for their worker's cores even on a machine with fewer processors than the workers have.
 */
final class Budget {
    /** The cores of a TaskManager, from a property of its JVM, {@code -Dsluice.cores=2}. */
    static final String CORES = "sluice.cores";

    private static final long SLACK_NANOS = 5_000_000;
    private static Budget shared;

    private final double cores;
    private long servedUntil;

    Budget(double cores, long nowNanos) {
        if (!(cores > 0)) {
            throw new IllegalArgumentException("a budget must be above 0 cores, but got " + cores);
        }
        this.cores = cores;
        servedUntil = nowNanos;
    }

    /** The budget of this JVM. */
    static synchronized Budget shared() {
        if (shared == null) {
            String cores = System.getProperty(CORES);
            if (cores == null) {
                throw new IllegalStateException("operators that share a budget need TaskManagers started with -D"
                        + CORES + "=N; or let each operator have its own (cost 'paced')");
            }
            shared = new Budget(Double.parseDouble(cores), System.nanoTime());
        }
        return shared;
    }

    /** Take CPU time. @return when it has been served, in the nanoseconds of {@code nowNanos} */
    synchronized long take(long cpuNanos, long nowNanos) {
        servedUntil = Math.max(servedUntil, nowNanos - SLACK_NANOS) + Math.round(cpuNanos / cores);
        return servedUntil;
    }
}
