-- Nexmark q1, currency conversion: every bid with its price in euros (1 dollar = 0.908 euro).
-- Reads the view `bid` over the one table of events: bids are its rows of type 2.
INSERT INTO converted_bids
SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra
FROM bid;
