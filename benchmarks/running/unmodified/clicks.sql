-- Clicks of each key, counted as they come: two Kafka tables, as a user writes them.
CREATE TABLE clicks (
  id BIGINT,
  `key` STRING,
  `at` BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = 'clicks',
  'properties.bootstrap.servers' = '{bootstrap}',
  'properties.group.id' = 'clicks-by-key',
  'scan.startup.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TABLE clicks_by_key (
  `key` STRING,
  clicks BIGINT,
  last_id BIGINT,
  PRIMARY KEY (`key`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'clicks-by-key',
  'properties.bootstrap.servers' = '{bootstrap}',
  'key.format' = 'json',
  'value.format' = 'json'
);

INSERT INTO clicks_by_key
SELECT `key`, COUNT(*), MAX(id) FROM clicks GROUP BY `key`;
