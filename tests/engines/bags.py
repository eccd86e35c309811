# SPDX-License-Identifier: Apache-2.0
"""The records that tests of packing on engines write, and what goes wrong in the tasks that make them. Workers import
it. As a program: bags.py ENGINE PATH FLAG, a driver that packs until it is killed."""
import os
import pathlib
import signal
import sys
import time

N = 120
SCHEMA = {"x": "int64", "text": "utf8", "data": "bytes"}


def record(i):
    return {"x": int(i), "text": f"number {i}", "data": bytes([i % 256]) * (i % 5)}


def killed_once(flag, i, at=77):
    """Return the record. The first process that comes to record `at` is killed before it has it."""
    if i == at:
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return record(i)
        os.kill(os.getpid(), signal.SIGKILL)
    return record(i)


def killed_together(flag, i):
    """Return the record. The first process that comes to record 77 is killed, and its siblings with it: of Spark's
    workers those that write, too."""
    if i == 77 and not os.path.exists(flag):
        pathlib.Path(flag).touch()
        parent = str(os.getppid())
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                if stat.read_text().rpartition(")")[2].split()[1] == parent:
                    os.kill(int(stat.parent.name), signal.SIGKILL)
            except OSError:
                pass
    return record(i)


def failing(i):
    if i == 77:
        raise ValueError("record 77 cannot be made")
    return record(i)


def slow(flag, i):
    """Return the record; says that a part is being written, and then takes long."""
    if i == 77:
        pathlib.Path(flag).touch()
        time.sleep(60)
    return record(i)


def unshared(folder, i):
    """Return the record, on a machine that does not see the directory of the parts."""
    for path in pathlib.Path(folder).glob(".data.parts-*/.penstock-parts"):
        path.write_text("of another machine")
    return record(i)


def of_row(make, row):
    """Return the record of a row of ray.data.range."""
    return make(row["id"])


def frame(session, make):
    """Return the records as a data frame of 6 partitions, in batches of 5 rows."""
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")
    rows = session.sparkContext.parallelize(range(N), 6).map(make).map(lambda r: (r["x"], r["text"], bytearray(r["data"])))
    return session.createDataFrame(rows, "x long, text string, data binary")


def spark_session():
    from pyspark.sql import SparkSession
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").config(
        "spark.ui.showConsoleProgress", "false").config(
        "spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()


def drive(engine, path, flag):
    import functools
    make = functools.partial(slow, flag)
    if engine == "dask":
        import dask.bag
        import penstock.dask
        bag = dask.bag.from_sequence(range(N), npartitions=6).map(make)
        penstock.dask.write(bag, path, SCHEMA, overwrite=True)
    if engine == "ray":
        import ray
        import penstock.ray
        ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
        data = ray.data.range(N, override_num_blocks=6).map(functools.partial(of_row, make))
        data.write_datasink(penstock.ray.Datasink(path, SCHEMA, overwrite=True))
    if engine == "spark":
        import penstock.spark
        penstock.spark.write(frame(spark_session(), make), path, SCHEMA, overwrite=True)


if __name__ == "__main__":
    drive(*sys.argv[1:])
