"""A script and a jar of a user's, whose sources Sluice can set the rate of."""

import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from testbeds.flink.feeding.recordings import recording
from testbeds.flink.programs.user_programs import SqlScript
from testbeds.local.javac import compile_java

SCRIPT = """
CREATE TABLE clicks (page BIGINT, visitor BIGINT, clicked TIMESTAMP(3) METADATA FROM 'timestamp',
  WATERMARK FOR clicked AS clicked)
WITH ('connector' = 'kafka', 'topic' = 'clicks', 'format' = 'json', 'json.timestamp-format.standard' = 'SQL');
CREATE TEMPORARY VIEW people AS SELECT page, clicked FROM clicks WHERE visitor >= 10;
CREATE TABLE counts (page BIGINT, clicks BIGINT, `offset` BIGINT METADATA VIRTUAL)
WITH ('connector' = 'kafka', 'topic' = 'counts', 'format' = 'json');
INSERT INTO counts
SELECT page, COUNT(*) FROM people GROUP BY page, TUMBLE(clicked, INTERVAL '1' SECOND);
"""
_NUMBERS = """
    static final class Numbers implements Events<Long> {
        private static final long serialVersionUID = 1;

        @Override
        public Long at(long index, long timeMs) {
            return index;
        }
    }
"""
JAR = (
    """
package example;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import sluice.Rated;
import sluice.source.Events;

public final class Remainders {"""
    + _NUMBERS
    + """
    public static void main(String[] args) throws Exception {
        long divisor = Long.parseLong(args[0]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        if (divisor == 0) {
            env.fromSequence(0, 1000).sinkTo(new DiscardingSink<>());
        } else {
            Rated.source(env, "numbers", new Numbers(), Types.LONG, WatermarkStrategy.noWatermarks())
                    .filter(number -> number % divisor == 0).name("divisible")
                    .keyBy(number -> number % 7)
                    .reduce((a, b) -> a + b).name("sum")
                    .sinkTo(new DiscardingSink<>()).name("nowhere");
        }
        env.execute("whatever");
    }
}
"""
)
TABLE_JAR = (
    """
package example;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import sluice.Rated;
import sluice.source.Events;

public final class TableRemainders {"""
    + _NUMBERS
    + """
    public static void main(String[] args) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.createTemporaryView("numbers",
                Rated.source(env, "numbers", new Numbers(), Types.LONG, WatermarkStrategy.noWatermarks()));
        tables.executeSql("CREATE TABLE sums (r BIGINT, total BIGINT) WITH ('connector' = 'blackhole')");
        tables.executeSql("INSERT INTO sums SELECT MOD(f0, 7), SUM(f0) FROM numbers WHERE MOD(f0, 4) = 0 GROUP BY MOD(f0, 7)");
    }
}
"""
)


def clicks_script(folder: Path) -> SqlScript:
    """SCRIPT with a Parquet file for its table. Of ten visitors in a row nine are people."""
    at = pa.array([1_767_225_600_000 + 10 * i for i in range(1000)], pa.timestamp("ms"))
    columns = {"page": [i % 50 for i in range(1000)], "visitor": [i % 100 for i in range(1000)], "clicked": at}
    path = folder / "clicks.parquet"
    pq.write_table(pa.table(columns), path)
    return SqlScript(SCRIPT, {"clicks": recording(path)}, keep_sinks=False)


def made_jar(program: str, name: str, folder: Path, kit: Path, flink: Path, jdk: Path) -> Path:
    """The jar of a Java program of one public class."""
    (folder / f"{name}.java").write_text(program)
    compile_java([folder / f"{name}.java"], folder / "classes", f"{kit}:{flink}/lib/*", jdk)
    with zipfile.ZipFile(folder / f"{name}.jar", "w") as made:
        for path in (folder / "classes").rglob("*.class"):
            made.write(path, str(path.relative_to(folder / "classes")))
    return folder / f"{name}.jar"
