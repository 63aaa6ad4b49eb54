package sluice.dataflow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class CostTest {
    @Test
    void aBudgetServesInTurnAndKeepsLittleOfWhatWasNotUsed() {
        Budget budget = new Budget(2, 0);
        assertEquals(500_000, budget.take(1_000_000, 0));
        assertEquals(1_000_000, budget.take(1_000_000, 0));
        assertEquals(55_500_000, budget.take(1_000_000, 60_000_000), "5 ms of what was not used");
    }

    @Test
    void aPacedTaskHandlesOneOverItsCost() throws InterruptedException {
        reaches(1, Cost.Payment.PACED, 1900, 2030);
    }

    @Test
    void tasksThatShareABudgetGetHalfEachOfWhatItHas() throws InterruptedException {
        System.setProperty(Budget.CORES, "0.5");
        reaches(2, Cost.Payment.SHARED, 450, 530);
    }

    /** None is ever faster than it may be; on a machine that is busy with other things, some tries are slower. */
    private static void reaches(int tasks, Cost.Payment payment, double least, double most)
            throws InterruptedException {
        List<Double> rates = List.of();
        for (int attempt = 0; attempt < 5; attempt++) {
            rates = rates(tasks, payment, 0.0005);
            for (double rate : rates) {
                assertTrue(rate <= most, rate + " records/s");
            }
            if (rates.stream().allMatch(rate -> rate >= least)) {
                return;
            }
        }
        fail(rates + ": each must reach " + least);
    }

    /** Records/s of each of some tasks that never wait for input. */
    private static List<Double> rates(int tasks, Cost.Payment payment, double cost) throws InterruptedException {
        List<AtomicLong> handled = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        long start = System.nanoTime();
        for (int i = 0; i < tasks; i++) {
            AtomicLong count = new AtomicLong();
            handled.add(count);
            Thread thread = new Thread(() -> {
                Cost paid = new Cost(cost, payment);
                while (!Thread.currentThread().isInterrupted()) {
                    paid.pay();
                    count.incrementAndGet();
                }
            });
            threads.add(thread);
            thread.start();
        }
        Thread.sleep(1000);
        double seconds = (System.nanoTime() - start) / 1e9;
        List<Double> rates = new ArrayList<>();
        for (int i = 0; i < tasks; i++) {
            rates.add(handled.get(i).get() / seconds);
            threads.get(i).interrupt();
            threads.get(i).join();
        }
        return rates;
    }
}
