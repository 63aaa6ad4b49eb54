"""Placement of shared slots: which tasks share a slot, and on which worker each slot is.

Notation, beside that of `models.placement.problem`:

| symbol | meaning |
|---|---|
| v, p_v | vertex, its tasks |
| g | slot sharing group: a slot of g holds at most one task of each of its vertices |
| S_g = max_{v in g} p_v | slots of g; each of them holds a task of its widest vertex |
| b | bundle: a set of vertices of one group that have a task in the same slot |
| m_b | slots with bundle b; a mix is the m of all bundles, with sum_{b of g} m_b = S_g and sum_{b with v} m_b = p_v |
| y_wb | slots with bundle b on worker w: a plan of a given mix |

A bundle is to the search what an operator is: m_b tasks, each with the loads of its vertices together. An edge (u, v) on
which every task sends to all becomes an edge from each bundle with u to each bundle with v, the sending one among them:

    c_e x_wu (1 - x_wv / p_v) = sum_{b with u} sum_{b' with v} (c_e m_b' / p_v) y_wb (1 - y_wb' / m_b')

So cost, search and proof of CAPS hold for the slots of a mix as they are.
"""
