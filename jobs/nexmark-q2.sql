-- Nexmark q2, selection: bids on a choice of auctions.
INSERT INTO selected_bids
SELECT auction, price
FROM bid
WHERE MOD(auction, 123) = 0;
