package sluice;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.Function;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.BooleanType;
import org.apache.flink.table.types.logical.DateType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.SmallIntType;
import org.apache.flink.table.types.logical.TinyIntType;
import org.apache.flink.table.types.logical.VarCharType;

/** Prints hash codes and key groups of keys as Flink's own classes have them: tests/data/flink/key-hashes.tsv. */
public final class KeyHashes {
    private static final LogicalType TEXT = new VarCharType(VarCharType.MAX_LENGTH);
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private KeyHashes() {}

    public static void main(String[] args) {
        OUT.println("type\tkey\thash_code\tgroup_of_128\tgroup_of_32768\tgroup_of_1000");
        List<Long> longs = List.of(0L, 1L, -1L, 42L, 1000L, 123456789012L, Long.MIN_VALUE, Long.MAX_VALUE);
        both("Long", "BIGINT", longs, new BigIntType(), key -> key);
        both("Integer", "INT", List.of(0, 1, -1, 42, Integer.MIN_VALUE, Integer.MAX_VALUE), new IntType(), key -> key);
        both("Short", "SMALLINT", List.of((short) 0, (short) -1, (short) 300), new SmallIntType(), key -> key);
        both("Byte", "TINYINT", List.of((byte) 0, (byte) -1, (byte) 7), new TinyIntType(), key -> key);
        both("Boolean", "BOOLEAN", List.of(true, false), new BooleanType(), key -> key);
        both("String", "STRING", List.of("", "a", "abcdefg", "abcdefgh", "abcdefghijklmnop", "abcdefghijklmnopq", "Zürich",
                "日本語", "😀x", "user-000123"), TEXT, StringData::fromString);
        print("DATE", "19000", row(List.of(new DateType()), 19000));
        List<LogicalType> two = List.of(new BigIntType(), TEXT);
        print("BIGINT,STRING", "5,abc", row(two, 5L, StringData.fromString("abc")));
        print("BIGINT,STRING", "5,abcdefghi", row(two, 5L, StringData.fromString("abcdefghi")));
        print("STRING,INT,STRING", "abcdefghi,7,Zürich am See", row(List.of(TEXT, new IntType(), TEXT),
                StringData.fromString("abcdefghi"), 7, StringData.fromString("Zürich am See")));
    }

    private static <K> void both(String java, String sql, List<K> keys, LogicalType type, Function<K, Object> internal) {
        for (K key : keys) {
            print(java, key.toString(), key);
            print(sql, key.toString(), row(List.of(type), internal.apply(key)));
        }
    }

    private static Object row(List<LogicalType> types, Object... fields) {
        return new RowDataSerializer(types.toArray(new LogicalType[0])).toBinaryRow(GenericRowData.of(fields)).copy();
    }

    private static void print(String type, String key, Object hashed) {
        OUT.println(String.join("\t", type, key, Integer.toString(hashed.hashCode()), group(hashed, 128),
                group(hashed, 32768), group(hashed, 1000)));
    }

    private static String group(Object hashed, int groups) {
        return Integer.toString(KeyGroupRangeAssignment.assignToKeyGroup(hashed, groups));
    }
}
