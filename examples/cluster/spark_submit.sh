#!/usr/bin/env bash
# Scores the files of a volume on Spark on Kubernetes.
#
#   kubectl create serviceaccount spark
#   kubectl create rolebinding spark --clusterrole=edit --serviceaccount=default:spark
#   ./spark_submit.sh k8s://https://ADDRESS-OF-THE-CLUSTER:6443
#
# A task has all CPUs of its executor, so that each executor has one scorer, with a thread for each CPU. Python's memory
# is not part of the JVM's; it counts as overhead.
set -euo pipefail
image=registry.example.org/bertscore:spark
volume=volumes.persistentVolumeClaim.data
exec spark-submit \
    --master "$1" \
    --deploy-mode cluster \
    --name bertscore \
    --conf spark.kubernetes.container.image="$image" \
    --conf spark.kubernetes.authenticate.driver.serviceAccountName=spark \
    --conf spark.kubernetes.driver."$volume".options.claimName=bertscore-data \
    --conf spark.kubernetes.driver."$volume".mount.path=/data \
    --conf spark.kubernetes.executor."$volume".options.claimName=bertscore-data \
    --conf spark.kubernetes.executor."$volume".mount.path=/data \
    --conf spark.executor.instances=32 \
    --conf spark.executor.cores=4 \
    --conf spark.task.cpus=4 \
    --conf spark.executor.memory=2g \
    --conf spark.executor.memoryOverhead=4g \
    local:///work/score_on_spark.py /bundle /data/pairs /data/scores
