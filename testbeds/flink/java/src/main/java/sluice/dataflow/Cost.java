package sluice.dataflow;

import java.lang.management.ManagementFactory;
import java.util.concurrent.locks.LockSupport;

/**
 * The cost of a record at a task, and how it is paid: in quanta of a millisecond, so that paying itself is cheap.
 *
 * <ul>
 *   <li>BUSY burns CPU time of the machine.
 *   <li>PACED waits: the task handles 1 / cost records/s, as the rate-limited operators of DS2 section 5.2, whatever
 *       else runs on the machine.
 *   <li>SHARED waits as well, and longer when the tasks of its TaskManager together ask for more than its budget.
 * </ul>
 *
 * <p>While it waits, Flink counts the task as busy.
 */
final class Cost {
    enum Payment {
        BUSY,
        PACED,
        SHARED
    }

    private static final long QUANTUM_NANOS = 1_000_000;
    private static final long SLACK_NANOS = 5_000_000;

    private final double nanosPerRecord;
    private final Payment payment;
    private final Budget budget;
    private double owed;
    private long paidUntil = System.nanoTime();

    Cost(double secondsPerRecord, Payment payment) {
        nanosPerRecord = secondsPerRecord * 1e9;
        this.payment = payment;
        budget = payment == Payment.SHARED ? Budget.shared() : null;
    }

    /** Pay for one record. */
    void pay() {
        owed += nanosPerRecord;
        if (owed < QUANTUM_NANOS) {
            return;
        }
        long due = (long) owed;
        owed -= due;
        if (payment == Payment.BUSY) {
            burn(due);
            return;
        }
        long now = System.nanoTime();
        paidUntil = Math.max(paidUntil, now - SLACK_NANOS) + due;
        waitUntil(budget == null ? paidUntil : Math.max(paidUntil, budget.take(due, now)));
    }

    private static void burn(long cpuNanos) {
        long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() + cpuNanos;
        while (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < end) {
            Thread.onSpinWait();
        }
    }

    /** An interrupt ends the wait; Flink interrupts a task that it cancels. */
    private static void waitUntil(long nanos) {
        for (long left = nanos - System.nanoTime(); left > 0 && !Thread.currentThread().isInterrupted();
                left = nanos - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }
}
