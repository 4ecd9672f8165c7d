"""A moto server of its own process on a free loopback port, with one bucket."""

import re
import subprocess
import sys
import time

import boto3
import requests

BUCKET = "bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


class Server:
    """Started at once; ``environment`` leads to it."""

    def __init__(self, folder):
        self.log = folder / "moto.log"
        command = [sys.executable, "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        self.url = self._url()
        self.environment = {**KEYS, "AWS_ENDPOINT_URL": self.url, "AWS_CONFIG_FILE": str(folder / "none")}
        self.client().create_bucket(Bucket=BUCKET)

    def _url(self):
        while not (found := re.search(r"Running on (http://127.0.0.1:\d+)", self.log.read_text())):
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        return found[1]

    def client(self):
        keys = {"aws_access_key_id": "user", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
        return boto3.client("s3", endpoint_url=self.url, **keys)

    def objects(self):
        """Every object with its ETag and the time of its last change."""
        found = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return {
            each["Key"]: (each["ETag"], each["LastModified"]) for page in found for each in page.get("Contents", ())
        }

    def demand_keys(self):
        """From now on nobody is let in, since no user was made."""
        requests.post(f"{self.url}/moto-api/reset-auth", data=b"0", timeout=10).raise_for_status()

    def stop(self):
        self.process.kill()
        self.process.wait()
