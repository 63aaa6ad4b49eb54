-- The Nexmark tables that the queries of jobs/ read and write. {control} is where the rate is set, {seed} of the events.
CREATE TABLE events (
  event_type INT,
  person ROW<id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,
             `dateTime` TIMESTAMP(3), extra STRING>,
  auction ROW<id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
              `dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING>,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING>,
  `dateTime` TIMESTAMP(3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'sluice', 'control' = '{control}', 'seed' = '{seed}');

CREATE VIEW person AS
SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state, `dateTime`,
       person.extra
FROM events WHERE event_type = 0;

CREATE VIEW auction AS
SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve, `dateTime`,
       auction.expires, auction.seller, auction.category, auction.extra
FROM events WHERE event_type = 1;

CREATE VIEW bid AS
SELECT bid.auction, bid.bidder, bid.price, `dateTime`, bid.extra
FROM events WHERE event_type = 2;

CREATE TABLE converted_bids (auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` TIMESTAMP(3), extra STRING)
WITH ('connector' = 'blackhole');
CREATE TABLE selected_bids (auction BIGINT, price BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE local_items (name STRING, city STRING, state STRING, id BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE hot_items (auction BIGINT, num BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE new_users (id BIGINT, name STRING, starttime TIMESTAMP(3)) WITH ('connector' = 'blackhole');
CREATE TABLE user_sessions (bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3))
WITH ('connector' = 'blackhole');
