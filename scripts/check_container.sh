#!/usr/bin/env bash
# Builds the image of examples/Dockerfile from a folder with `dist`, `constraints.txt` and `bundle`, runs it without any
# rights on a read-only root, and asks it for a score: `scripts/check_container.sh FOLDER`. Needs Docker.
set -euo pipefail
docker build --quiet --file "$(dirname "$0")/../examples/Dockerfile" --tag bertscore "$1"
key=$(head -c 24 /dev/urandom | base64)
echo "$key" > "$1/keys.txt"
container=$(docker run --detach --read-only --cap-drop ALL --security-opt no-new-privileges --publish 127.0.0.1::8080 \
    --volume "$(realpath "$1")/keys.txt:/keys.txt:ro" bertscore)
trap 'docker logs "$container"; docker rm --force "$container" > /dev/null' EXIT
for _ in $(seq 60); do
    [ "$(docker inspect --format '{{.State.Health.Status}}' "$container")" = healthy ] && break
    sleep 1
done
curl --fail --silent --show-error "http://$(docker port "$container" 8080)/v1/score" \
    --header "Authorization: Bearer $key" --header 'Content-Type: application/json' \
    --data '{"pairs": [{"candidate": "It is freezing today.", "reference": "It is cold today."}]}' | grep '"f1":0.9007'
docker stop --time 40 "$container" > /dev/null
[ "$(docker inspect --format '{{.State.ExitCode}} {{.Config.User}}' "$container")" = "0 65532:65532" ]
docker image inspect --format 'The image has {{.Size}} bytes.' bertscore
