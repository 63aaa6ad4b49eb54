package sluice.table;

import java.nio.charset.StandardCharsets;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.types.DataType;
import sluice.source.Events;
import sluice.source.Mixer;

/**
 * The events of the Nexmark benchmark's auction site, with its generator's mix, keys and sizes: of 50 events in a row 1 is
 * a person, 3 are auctions and 46 are bids, of 200, 500 and 100 bytes on average. One of two bids goes to the hot auction
 * (the first of the last hundred); three of four bids come from the hot bidder and three of four auctions from the hot
 * seller (of the last hundred persons).
 */
public final class NexmarkEvents implements Events<RowData> {
    private static final long serialVersionUID = 1;

    static final int PERSON = 0;
    static final int AUCTION = 1;
    static final int BID = 2;

    private static final int PERSONS = 1;
    private static final int AUCTIONS = 3;
    private static final int IN_A_ROW = 50;
    private static final long FIRST_ID = 1000;
    private static final int FIRST_CATEGORY = 10;
    private static final int CATEGORIES = 5;
    private static final int HOT_GROUP = 100;
    private static final int ONE_AUCTION_IN = 2;
    private static final int ONE_PERSON_IN = 4;
    private static final int ACTIVE_PERSONS = 1000;
    private static final int AUCTIONS_IN_FLIGHT = 100;
    private static final int ID_LEAD = 10;
    private static final int AUCTION_LENGTH_MS = 60_000;

    private static final String[] STATES = {"AZ", "CA", "ID", "OR", "WA", "WY"};
    private static final String[] CITIES = {
        "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"
    };
    private static final byte[] LETTERS = letters(1 << 14);

    private final long seed;
    private transient Mixer random;
    private transient StringData[] states;
    private transient StringData[] cities;

    public NexmarkEvents(long seed) {
        this.seed = seed;
    }

    /** The columns that the table must have, event time last. */
    static DataType rowType() {
        DataType time = DataTypes.TIMESTAMP(3);
        DataType text = DataTypes.STRING();
        DataType number = DataTypes.BIGINT();
        return DataTypes.ROW(
                DataTypes.FIELD("event_type", DataTypes.INT()),
                DataTypes.FIELD("person", DataTypes.ROW(
                        DataTypes.FIELD("id", number), DataTypes.FIELD("name", text),
                        DataTypes.FIELD("emailAddress", text), DataTypes.FIELD("creditCard", text),
                        DataTypes.FIELD("city", text), DataTypes.FIELD("state", text),
                        DataTypes.FIELD("dateTime", time), DataTypes.FIELD("extra", text))),
                DataTypes.FIELD("auction", DataTypes.ROW(
                        DataTypes.FIELD("id", number), DataTypes.FIELD("itemName", text),
                        DataTypes.FIELD("description", text), DataTypes.FIELD("initialBid", number),
                        DataTypes.FIELD("reserve", number), DataTypes.FIELD("dateTime", time),
                        DataTypes.FIELD("expires", time), DataTypes.FIELD("seller", number),
                        DataTypes.FIELD("category", number), DataTypes.FIELD("extra", text))),
                DataTypes.FIELD("bid", DataTypes.ROW(
                        DataTypes.FIELD("auction", number), DataTypes.FIELD("bidder", number),
                        DataTypes.FIELD("price", number), DataTypes.FIELD("dateTime", time),
                        DataTypes.FIELD("extra", text))),
                DataTypes.FIELD("dateTime", time));
    }

    @Override
    public void open() {
        random = new Mixer();
        states = texts(STATES);
        cities = texts(CITIES);
    }

    @Override
    public RowData at(long index, long timeMs) {
        random.reset(seed, index);
        TimestampData time = TimestampData.fromEpochMillis(timeMs);
        int offset = (int) (index % IN_A_ROW);
        if (offset < PERSONS) {
            return GenericRowData.of(PERSON, person(index, time), null, null, time);
        }
        if (offset < PERSONS + AUCTIONS) {
            return GenericRowData.of(AUCTION, null, auction(index, time), null, time);
        }
        return GenericRowData.of(BID, null, null, bid(index, time), time);
    }

    private RowData person(long index, TimestampData time) {
        return GenericRowData.of(FIRST_ID + lastPerson(index), text(10, 5), text(18, 5), text(19, 0),
                cities[random.nextInt(cities.length)], states[random.nextInt(states.length)], time, text(128, 20));
    }

    private RowData auction(long index, TimestampData time) {
        long last = lastPerson(index);
        long seller = random.nextInt(ONE_PERSON_IN) > 0 ? last / HOT_GROUP * HOT_GROUP : anyPerson(last);
        long price = price();
        TimestampData expires = TimestampData.fromEpochMillis(
                time.getMillisecond() + 1 + random.nextInt(AUCTION_LENGTH_MS));
        return GenericRowData.of(FIRST_ID + lastAuction(index), text(15, 5), text(50, 25), price, price + price(), time,
                expires, FIRST_ID + seller, (long) FIRST_CATEGORY + random.nextInt(CATEGORIES), text(379, 40));
    }

    private RowData bid(long index, TimestampData time) {
        long lastAuction = lastAuction(index);
        long lastPerson = lastPerson(index);
        long auction = random.nextInt(ONE_AUCTION_IN) > 0
                ? lastAuction / HOT_GROUP * HOT_GROUP : anyAuction(lastAuction);
        long bidder = random.nextInt(ONE_PERSON_IN) > 0
                ? lastPerson / HOT_GROUP * HOT_GROUP + 1 : anyPerson(lastPerson);
        return GenericRowData.of(FIRST_ID + auction, FIRST_ID + bidder, price(), time, text(68, 10));
    }

    /** Number of the last person that has entered when event {@code index} happens. */
    static long lastPerson(long index) {
        return index / IN_A_ROW;
    }

    /** Number of the last auction that was opened; those of a row are its events 1 to 3. */
    static long lastAuction(long index) {
        long row = index / IN_A_ROW;
        long offset = index % IN_A_ROW;
        return row * AUCTIONS + Math.min(offset - PERSONS, AUCTIONS - 1);
    }

    /** One of the persons that are active, or, rarely, that will enter next. */
    private long anyPerson(long last) {
        long active = Math.min(last + 1, ACTIVE_PERSONS);
        return last + 1 - active + random.nextInt((int) active + ID_LEAD);
    }

    private long anyAuction(long last) {
        long first = Math.max(last - AUCTIONS_IN_FLIGHT, 0);
        return first + random.nextInt((int) (Math.max(last, 0) - first) + 1 + ID_LEAD);
    }

    /** In cents: the logarithm is spread evenly over six decades. */
    private long price() {
        return Math.round(Math.pow(10, random.nextDouble() * 6) * 100);
    }

    /** Random letters, {@code mean} of them, give or take {@code spread}. */
    private StringData text(int mean, int spread) {
        int length = mean - spread + (spread == 0 ? 0 : random.nextInt(2 * spread + 1));
        return StringData.fromBytes(LETTERS, random.nextInt(LETTERS.length - length), length);
    }

    private static StringData[] texts(String[] words) {
        StringData[] texts = new StringData[words.length];
        for (int i = 0; i < words.length; i++) {
            texts[i] = StringData.fromString(words[i]);
        }
        return texts;
    }

    private static byte[] letters(int count) {
        StringBuilder letters = new StringBuilder(count);
        Mixer random = new Mixer();
        while (letters.length() < count) {
            letters.append((char) ('a' + random.nextInt(26)));
        }
        return letters.toString().getBytes(StandardCharsets.US_ASCII);
    }
}
