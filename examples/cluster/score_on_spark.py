"""Scores Parquet files on Spark, and writes Parquet files.

    pip install 'bertscore-onnx[cpu,spark]'
    spark-submit score_on_spark.py BUNDLE PAIRS SCORES

PAIRS has the columns `candidate` and `reference`, with one reference per row or a list of them.
Every executor must see the bundle: at a path that all share, or shipped as an archive, by
`spark-submit --archives bundle.zip#NAME`, where BUNDLE is NAME.
"""

import sys

from pyspark.sql import SparkSession

from bertscore_onnx_service.jobs.spark import score_dataframe

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, pairs, scores = sys.argv[1:]
    spark = SparkSession.builder.appName("bertscore").getOrCreate()
    score_dataframe(spark.read.parquet(pairs), bundle).write.parquet(scores)
    spark.stop()
