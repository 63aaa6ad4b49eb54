-- Nexmark q5, hot items: the auctions that got the most bids in the last 10 seconds, every 2 seconds.
INSERT INTO hot_items
SELECT counts.auction, counts.num
FROM (
  SELECT auction, COUNT(*) AS num,
         HOP_START(`dateTime`, INTERVAL '2' SECOND, INTERVAL '10' SECOND) AS starttime,
         HOP_END(`dateTime`, INTERVAL '2' SECOND, INTERVAL '10' SECOND) AS endtime
  FROM bid
  GROUP BY auction, HOP(`dateTime`, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
) AS counts
JOIN (
  SELECT MAX(num) AS maxnum, starttime, endtime
  FROM (
    SELECT COUNT(*) AS num,
           HOP_START(`dateTime`, INTERVAL '2' SECOND, INTERVAL '10' SECOND) AS starttime,
           HOP_END(`dateTime`, INTERVAL '2' SECOND, INTERVAL '10' SECOND) AS endtime
    FROM bid
    GROUP BY auction, HOP(`dateTime`, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
  ) AS counts_again
  GROUP BY starttime, endtime
) AS maxima
ON counts.starttime = maxima.starttime AND counts.endtime = maxima.endtime AND counts.num >= maxima.maxnum;
