#!/bin/bash
# A Ray cluster for coevo in a Slurm job, and a run on it. Not tried: no Slurm was available.
#   sbatch infra/ray/slurm.sh RECIPE [OVERRIDES]
# All nodes have the same Python environment with coevo[train,ray] under the same path; COEVO_WORKSPACE is on the first.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
set -euo pipefail
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | cut -d' ' -f1)
token=$(mktemp "$HOME/.coevo-ray-XXXXXX")  # mode 0600, in a home that all nodes see
openssl rand -hex 32 > "$token"
trap 'kill $(jobs -p); rm -f "$token"' EXIT
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$token RAY_USAGE_STATS_ENABLED=0 RAY_worker_niceness=0
export RAY_health_check_failure_threshold=4 RAY_health_check_period_ms=500 RAY_health_check_timeout_ms=2000
srun --nodes=1 --ntasks=1 --nodelist="$head" --overlap \
    ray start --block --head --node-ip-address="$address" --port=6379 --include-dashboard=false &
sleep 20
srun --nodes=$((SLURM_NNODES - 1)) --ntasks=$((SLURM_NNODES - 1)) --exclude="$head" --overlap \
    ray start --block --address="$address:6379" &
srun --nodes=1 --ntasks=1 --nodelist="$head" --overlap \
    coevo run "$@" "placement={type: ray, address: '$address:6379', startup_timeout: 120, pools: {environments: {}}}"
