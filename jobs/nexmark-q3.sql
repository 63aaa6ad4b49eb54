-- Nexmark q3, local item suggestion: who is selling in OR, ID or CA in category 10, and under which auction numbers.
INSERT INTO local_items
SELECT P.name, P.city, P.state, A.id
FROM auction AS A
JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA');
