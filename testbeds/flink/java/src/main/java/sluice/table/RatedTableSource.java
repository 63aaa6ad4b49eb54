package sluice.table;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.abilities.SupportsWatermarkPushDown;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import sluice.source.Events;
import sluice.source.RatedSource;

/** A table read from a {@link RatedSource}; it makes its watermarks itself, so that they need no operator of their own. */
final class RatedTableSource implements ScanTableSource, SupportsWatermarkPushDown {
    private final ObjectIdentifier table;
    private final ReadableConfig options;
    private final DataType row;
    private final DecodingFormat<DeserializationSchema<RowData>> format;
    private final Integer timeColumn;
    private WatermarkStrategy<RowData> watermarks = WatermarkStrategy.noWatermarks();

    /** The name of the table is the name under which the source's rate is set. */
    RatedTableSource(ObjectIdentifier table, ReadableConfig options, DataType row,
            DecodingFormat<DeserializationSchema<RowData>> format, Integer timeColumn) {
        this.table = table;
        this.options = options;
        this.row = row;
        this.format = format;
        this.timeColumn = timeColumn;
    }

    @Override
    public ChangelogMode getChangelogMode() {
        return ChangelogMode.insertOnly();
    }

    @Override
    public void applyWatermark(WatermarkStrategy<RowData> strategy) {
        watermarks = strategy;
    }

    @Override
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
        TypeInformation<RowData> type = context.createTypeInformation(row);
        String name = table.getObjectName();
        RatedSource<RowData> source =
                new RatedSource<>(events(context), type, options.get(RatedTableFactory.CONTROL), name);
        return new DataStreamScanProvider() {
            @Override
            public DataStream<RowData> produceDataStream(ProviderContext provider, StreamExecutionEnvironment env) {
                // Flink 1.20 replaces the description by one of its own, with the same beginning; 2.3 does not.
                return env.fromSource(source, watermarks, name, type).uid("source-" + name)
                        .setDescription("TableSourceScan(table=[[" + String.join(", ", table.toList()) + "]])");
            }

            @Override
            public boolean isBounded() {
                return false;
            }
        };
    }

    private Events<RowData> events(ScanContext context) {
        if (format == null) {
            return new NexmarkEvents(options.get(RatedTableFactory.SEED));
        }
        boolean inMs = timeColumn != null && DataType.getFieldDataTypes(row).get(timeColumn).getLogicalType()
                .is(LogicalTypeRoot.BIGINT);
        return new RecordedEvents(options.get(RatedTableFactory.PATH), options.get(RatedTableFactory.HEADER_LINES),
                format.createRuntimeDecoder(context, row), timeColumn, inMs);
    }

    @Override
    public DynamicTableSource copy() {
        RatedTableSource copy = new RatedTableSource(table, options, row, format, timeColumn);
        copy.watermarks = watermarks;
        return copy;
    }

    @Override
    public String asSummaryString() {
        return "sluice";
    }
}
