-- One database for each server; their tables are made by the servers when they first start.
CREATE DATABASE prefect;
CREATE DATABASE mlflow;
