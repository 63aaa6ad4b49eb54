-- Nexmark q8, monitor new users: persons who entered and opened an auction within the same 10 seconds.
INSERT INTO new_users
SELECT P.id, P.name, P.starttime
FROM (
  SELECT id, name,
         TUMBLE_START(`dateTime`, INTERVAL '10' SECOND) AS starttime,
         TUMBLE_END(`dateTime`, INTERVAL '10' SECOND) AS endtime
  FROM person
  GROUP BY id, name, TUMBLE(`dateTime`, INTERVAL '10' SECOND)
) AS P
JOIN (
  SELECT seller,
         TUMBLE_START(`dateTime`, INTERVAL '10' SECOND) AS starttime,
         TUMBLE_END(`dateTime`, INTERVAL '10' SECOND) AS endtime
  FROM auction
  GROUP BY seller, TUMBLE(`dateTime`, INTERVAL '10' SECOND)
) AS A
ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime;
