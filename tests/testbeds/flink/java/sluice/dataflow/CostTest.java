package sluice.dataflow;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

public final class CostTest {
    public static void main(String[] args) throws InterruptedException {
        aBudgetServesInTurnAndKeepsLittleOfWhatWasNotUsed();
        aPacedTaskHandlesOneOverItsCost();
        tasksThatShareABudgetGetHalfEachOfWhatItHas();
    }

    private static void aBudgetServesInTurnAndKeepsLittleOfWhatWasNotUsed() {
        Budget budget = new Budget(2, 0);
        assert budget.take(1_000_000, 0) == 500_000;
        assert budget.take(1_000_000, 0) == 1_000_000;
        assert budget.take(1_000_000, 60_000_000) == 55_500_000 : "5 ms of what was not used";
    }

    private static void aPacedTaskHandlesOneOverItsCost() throws InterruptedException {
        double rate = rates(1, Cost.Payment.PACED, 0.0005).get(0);
        assert rate <= 2030 && rate >= 1900 : rate;
    }

    private static void tasksThatShareABudgetGetHalfEachOfWhatItHas() throws InterruptedException {
        System.setProperty(Budget.CORES, "0.5");
        List<Double> rates = rates(2, Cost.Payment.SHARED, 0.0005);
        for (double rate : rates) {
            assert rate <= 530 && rate >= 450 : rates + ": 0.5 cores make 1000 records/s together";
        }
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
