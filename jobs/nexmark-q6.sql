-- Nexmark q6, average selling price: for each seller, the mean of the prices at which their last auctions closed.
INSERT INTO selling_prices
SELECT seller,
       AVG(final) OVER (PARTITION BY seller ORDER BY expires ROWS BETWEEN 299 PRECEDING AND CURRENT ROW)
FROM (
  SELECT A.id, A.seller, A.expires, MAX(B.price) AS final
  FROM auction AS A
  JOIN bid AS B ON A.id = B.auction
  WHERE B.`dateTime` <= A.expires
  GROUP BY A.id, A.seller, A.expires
) AS closed;
