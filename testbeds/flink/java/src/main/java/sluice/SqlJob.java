package sluice;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.api.bridge.java.StreamStatementSet;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.api.internal.TableEnvironmentInternal;
import org.apache.flink.table.catalog.Catalog;
import org.apache.flink.table.catalog.CatalogBaseTable;
import org.apache.flink.table.catalog.CatalogTable;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.catalog.ObjectPath;
import org.apache.flink.table.operations.Operation;
import org.apache.flink.table.operations.SinkModifyOperation;

/** All INSERTs of a script as one job; what stands before them is executed. */
final class SqlJob {
    private static final Pattern TEMPORARY =
            Pattern.compile("^CREATE\\s+TEMPORARY\\s+TABLE\\b", Pattern.CASE_INSENSITIVE);
    private static final Pattern SET_BEGINS = Pattern.compile(
            "^(EXECUTE\\s+STATEMENT\\s+SET\\s+BEGIN|BEGIN\\s+STATEMENT\\s+SET)\\b", Pattern.CASE_INSENSITIVE);
    private static final Pattern SECURITY = Pattern.compile("^properties\\.(security|sasl|ssl)\\.");
    private static final String TIME_COLUMN = "time-column";

    private final Map<String, Map<String, String>> standIns;
    private final boolean discardSinks;
    private final String kafka;
    private final StreamTableEnvironment tables;
    private final Set<String> replaced = new HashSet<>();
    private final Set<String> redirected = new HashSet<>();

    /**
     * @param standIns options of the connector that stands in for the user's own, by table
     * @param kafka HOST:PORT of the brokers that its Kafka tables use; null: those that they name
     */
    SqlJob(
            Map<String, Map<String, String>> standIns,
            boolean discardSinks,
            String kafka,
            StreamExecutionEnvironment env) {
        this.standIns = standIns;
        this.discardSinks = discardSinks;
        this.kafka = kafka;
        tables = StreamTableEnvironment.create(env);
    }

    void build(String script) throws Exception {
        List<String> inserts = new ArrayList<>();
        for (String statement : SqlScript.statements(script)) {
            // The SQL client's brackets around several INSERTs; here they are one job anyway.
            String bare = SET_BEGINS.matcher(statement).replaceFirst("").trim();
            if (begins(bare, "INSERT")) {
                inserts.add(bare);
            } else if (!bare.isEmpty() && !bare.equalsIgnoreCase("END")) {
                execute(bare);
                standIn();
            }
        }
        if (inserts.isEmpty()) {
            throw new IllegalArgumentException("the SQL script must hold an INSERT INTO a sink table");
        }
        if (!replaced.containsAll(standIns.keySet())) {
            Set<String> missing = new HashSet<>(standIns.keySet());
            missing.removeAll(replaced);
            throw new IllegalArgumentException("recorded files stand in for tables that the script creates, but it has no "
                    + missing + "; its tables are " + List.of(tables.listTables()));
        }
        StreamStatementSet set = tables.createStatementSet();
        for (String insert : inserts) {
            if (discardSinks) {
                discard(insert);
            }
            set.addInsertSql(insert);
        }
        set.attachAsDataStream();
    }

    /** A view is resolved when it is created, so that its tables must be readable then. */
    private void standIn() throws Exception {
        for (String name : tables.listTables()) {
            if (standIns.containsKey(name) && replaced.add(name)) {
                ObjectPath path = new ObjectPath(tables.getCurrentDatabase(), name);
                alter(tables.getCurrentCatalog(), path, standIns.get(name));
            } else if (kafka != null && redirected.add(name)) {
                redirect(new ObjectPath(tables.getCurrentDatabase(), name));
            }
        }
    }

    private void discard(String insert) throws Exception {
        for (Operation operation : ((TableEnvironmentInternal) tables).getParser().parse(insert)) {
            if (operation instanceof SinkModifyOperation) {
                ObjectIdentifier sink =
                        ((SinkModifyOperation) operation).getContextResolvedTable().getIdentifier();
                alter(sink.getCatalogName(), sink.toObjectPath(), Map.of("connector", "blackhole"));
            }
        }
    }

    private void alter(String catalogName, ObjectPath path, Map<String, String> options) throws Exception {
        Catalog catalog = tables.getCatalog(catalogName).orElseThrow();
        CatalogBaseTable table = catalog.getTable(path);
        if (!(table instanceof CatalogTable)) {
            throw new ValidationException(path.getObjectName() + " must be a table, but is a view");
        }
        CatalogTable own = (CatalogTable) table;
        Map<String, String> all = new HashMap<>(options);
        String format = options.get("format");
        Schema schema = withoutMetadata(own.getUnresolvedSchema(), format != null);
        if (format != null) {
            // How the user reads such lines, for example the style of times in JSON.
            own.getOptions().forEach((key, value) -> {
                if (key.startsWith(format + ".")) {
                    all.putIfAbsent(key, value);
                }
            });
            timeColumn(path.getObjectName(), schema).ifPresent(c -> all.putIfAbsent(TIME_COLUMN, c));
            if (!schema.getWatermarkSpecs().isEmpty() && !all.containsKey(TIME_COLUMN)) {
                throw new ValidationException("the watermark of table " + path.getObjectName() + " is on a computed"
                        + " column; name the column of the recorded file that holds its time (time_column)");
            }
        }
        CatalogTable made = CatalogTable.newBuilder().schema(schema).comment(own.getComment())
                .partitionKeys(own.getPartitionKeys()).options(all).build();
        catalog.alterTable(path, made, false);
    }

    /**
     * What a connector would add to a record, such as Kafka's timestamp, is a column of the recorded file; a sink gets all but
     * virtual columns.
     */
    private static Schema withoutMetadata(Schema own, boolean isSource) {
        List<Schema.UnresolvedColumn> columns = new ArrayList<>();
        for (Schema.UnresolvedColumn column : own.getColumns()) {
            if (!(column instanceof Schema.UnresolvedMetadataColumn)) {
                columns.add(column);
                continue;
            }
            Schema.UnresolvedMetadataColumn metadata = (Schema.UnresolvedMetadataColumn) column;
            if (isSource || !metadata.isVirtual()) {
                columns.add(new Schema.UnresolvedPhysicalColumn(metadata.getName(), metadata.getDataType()));
            }
        }
        Schema.Builder made = Schema.newBuilder().fromColumns(columns);
        own.getWatermarkSpecs().forEach(one -> made.watermark(one.getColumnName(), one.getWatermarkExpression()));
        own.getPrimaryKey().ifPresent(key -> made.primaryKeyNamed(key.getConstraintName(), key.getColumnNames()));
        return made.build();
    }

    /** Kafka tables read from the begin of the given brokers' topics, which are as new as the job. */
    private void redirect(ObjectPath path) throws Exception {
        Catalog catalog = tables.getCatalog(tables.getCurrentCatalog()).orElseThrow();
        CatalogBaseTable table = catalog.getTable(path);
        String connector = table.getOptions().getOrDefault("connector", "");
        if (!(table instanceof CatalogTable) || !(connector.equals("kafka") || connector.equals("upsert-kafka"))) {
            return;
        }
        Map<String, String> options = new HashMap<>(table.getOptions());
        options.keySet().removeIf(SECURITY.asPredicate());
        options.put("properties.bootstrap.servers", kafka);
        if (connector.equals("kafka")) {
            options.put("scan.startup.mode", "earliest-offset");
        }
        catalog.alterTable(path, ((CatalogTable) table).copy(options), false);
    }

    /** The column of the watermark, where it is one of the file's. */
    private static Optional<String> timeColumn(String table, Schema schema) {
        return schema.getWatermarkSpecs().stream().map(Schema.UnresolvedWatermarkSpec::getColumnName)
                .filter(name -> schema.getColumns().stream()
                        .anyMatch(c -> c instanceof Schema.UnresolvedPhysicalColumn && c.getName().equals(name)))
                .findFirst();
    }

    /** SET 'key' = 'value' is a statement of the SQL client, not of Flink. Temporary tables cannot be changed. */
    private void execute(String statement) {
        if (!begins(statement, "SET")) {
            tables.executeSql(TEMPORARY.matcher(statement).replaceFirst("CREATE TABLE"));
            return;
        }
        String[] sides = statement.substring(4).split("=", 2);
        if (sides.length != 2) {
            throw new IllegalArgumentException("it must be SET 'key' = 'value', but got: " + statement);
        }
        tables.getConfig().set(unquoted(sides[0]), unquoted(sides[1]));
    }

    private static boolean begins(String statement, String word) {
        return statement.regionMatches(true, 0, word, 0, word.length())
                && statement.length() > word.length()
                && Character.isWhitespace(statement.charAt(word.length()));
    }

    private static String unquoted(String text) {
        String bare = text.trim();
        return bare.startsWith("'") && bare.endsWith("'") ? bare.substring(1, bare.length() - 1) : bare;
    }
}
