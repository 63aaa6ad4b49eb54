"""The work of the DAGs' tasks, a file for each DAG: open the run or plan behind a URI, call one step, return a URI.

Heavy imports are inside the functions, since Airflow imports these modules whenever it parses the DAGs.
"""
