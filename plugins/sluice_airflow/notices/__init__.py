"""What people should hear of in time, and who hears it: any notifier of Airflow."""
