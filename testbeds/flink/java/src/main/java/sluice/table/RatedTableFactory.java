package sluice.table;

import java.util.List;
import java.util.Set;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalTypeRoot;

/**
 * The table connector {@code sluice}: a source whose rate is set from outside. Without {@code path} it generates Nexmark
 * events; with it, it replays the lines of that file in the given {@code format}.
 */
public final class RatedTableFactory implements DynamicTableSourceFactory {
    static final ConfigOption<String> CONTROL = ConfigOptions.key("control").stringType().noDefaultValue()
            .withDescription("HOST:PORT that sets the rate.");
    static final ConfigOption<Long> SEED = ConfigOptions.key("seed").longType().defaultValue(1L)
            .withDescription("Seed of the generated events.");
    static final ConfigOption<String> PATH = ConfigOptions.key("path").stringType().noDefaultValue()
            .withDescription("A recorded file, present on every TaskManager; needs 'format'.");
    static final ConfigOption<Integer> HEADER_LINES = ConfigOptions.key("header-lines").intType().defaultValue(0)
            .withDescription("Lines at the beginning of the file to skip.");
    static final ConfigOption<String> TIME_COLUMN = ConfigOptions.key("time-column").stringType().noDefaultValue()
            .withDescription("Event time, re-based to now: a TIMESTAMP(3), or a BIGINT of epoch milliseconds.");

    @Override
    public String factoryIdentifier() {
        return "sluice";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(CONTROL);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(SEED, PATH, HEADER_LINES, TIME_COLUMN, FactoryUtil.FORMAT);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        ReadableConfig options = helper.getOptions();
        DataType row = context.getPhysicalRowDataType();
        DecodingFormat<DeserializationSchema<RowData>> format = helper.discoverOptionalDecodingFormat(
                DeserializationFormatFactory.class, FactoryUtil.FORMAT).orElse(null);
        helper.validate();
        if (options.getOptional(PATH).isPresent() != (format != null)) {
            throw new ValidationException("'path' and 'format' belong together; give both or none");
        }
        if (format == null) {
            requireNexmarkColumns(row);
        }
        return new RatedTableSource(context.getObjectIdentifier(), options, row, format, timeColumn(options, row));
    }

    private static void requireNexmarkColumns(DataType row) {
        String wanted = NexmarkEvents.rowType().getLogicalType().asSummaryString();
        String given = row.getLogicalType().copy(true).asSummaryString();
        if (!given.equals(wanted)) {
            throw new ValidationException("without 'path' the columns must be those of Nexmark: " + wanted
                    + ", but they are " + given);
        }
    }

    private static Integer timeColumn(ReadableConfig options, DataType row) {
        String name = options.get(TIME_COLUMN);
        if (name == null) {
            return null;
        }
        List<String> names = DataType.getFieldNames(row);
        int index = names.indexOf(name);
        if (index < 0) {
            throw new ValidationException("'time-column' must be one of " + names + ", but is " + name);
        }
        LogicalTypeRoot type = DataType.getFieldDataTypes(row).get(index).getLogicalType().getTypeRoot();
        if (type != LogicalTypeRoot.BIGINT && type != LogicalTypeRoot.TIMESTAMP_WITHOUT_TIME_ZONE
                && type != LogicalTypeRoot.TIMESTAMP_WITH_LOCAL_TIME_ZONE) {
            throw new ValidationException("'time-column' " + name + " must be a TIMESTAMP or BIGINT, but is " + type);
        }
        return index;
    }
}
