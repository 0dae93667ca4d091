#!/usr/bin/env bash
# Checks and measures podracer on this machine's NVIDIA GPU, beside JAX. Needs no network: a driver, and a Python with JAX's
# CUDA wheels (PYTHON names it, or else it is python3). Every step ends within STEP_TIMEOUT seconds (540) and leaves its results in the
# folder RESULTS (results, beside this file); a step that has them is not made again.
#   run.sh            all steps: check, ppo, anakin, envs, search, impala, variants, report
#   run.sh check      what the runtime does on the device
#   run.sh ppo [N..]  PPO on CartPole at so many environments; of 64 512 4096 16384 65536
#   run.sh anakin [N..]  the online actor-critic on Catch, Anakin's minimal unit
#   run.sh envs [N..] random steps in CartPole and Catch
#   run.sh search [N..]  searches from N roots side by side
#   run.sh impala     IMPALA on pixel Catch
#   run.sh variants   XLA's options, each on and off
#   run.sh compile    loops compiled for an H100 that is not there: for a machine without a GPU
#   run.sh report     report.md and report.json of what there is
#   run.sh podracer   the command line with the GPU's plugin: run.sh podracer train cartpole-ppo --set train.platform=cuda13
set -uo pipefail
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$(command -v "${PYTHON:-python3}") || { echo "kit: no ${PYTHON:-python3}: PYTHON names one with JAX's CUDA wheels" >&2; exit 1; }
results=${RESULTS:-$kit/results}
limit=${STEP_TIMEOUT:-540}
platform=${PODRACER_TEST_PLATFORM:-cuda13}
mkdir -p "$results"

say() { printf 'kit: %s\n' "$*" >&2; }

# The plugin of JAX's wheels, in place: it finds NVIDIA's libraries beside it.
if [ -z "${PODRACER_PLUGIN_PATH:-}" ]; then
  PODRACER_PLUGIN_PATH=$("$python" -c '
import os, site, sys
for folder in [*sys.path, *site.getsitepackages(), site.getusersitepackages()]:
    for name in ("xla_cuda13", "xla_cuda12"):
        plugin = os.path.join(folder, "jax_plugins", name, "xla_cuda_plugin.so")
        if os.path.isfile(plugin):
            print(plugin)
            sys.exit()
sys.exit(1)
') || { say "$python has no plugin of CUDA: pip install 'jax[cuda13]', or PYTHON=... with it, or PODRACER_PLUGIN_PATH=.../xla_cuda_plugin.so"; exit 1; }
fi
export PODRACER_PLUGIN_PATH
# The folder of CUDA's assembler and device functions that JAX names to XLA.
cuda=${CUDA_DATA:-$("$python" -c '
import os, sys
site = os.path.dirname(os.path.dirname(os.path.dirname(sys.argv[1])))
for folder in ("nvidia/cu13", "nvidia/cuda_nvcc"):
    if os.path.isfile(os.path.join(site, folder, "bin", "ptxas")):
        print(os.path.join(site, folder))
        sys.exit()
for folder in ("/usr/local/cuda", "/opt/cuda"):
    if os.path.isfile(os.path.join(folder, "bin", "ptxas")):
        print(folder)
        sys.exit()
' "$PODRACER_PLUGIN_PATH")}
if [ -n "$cuda" ] && [ -z "${XLA_FLAGS:-}" ]; then export XLA_FLAGS=--xla_gpu_cuda_data_dir=$cuda; fi

# What the peers import and JAX does not bring, unpacked once for this Python.
packages=$results/packages
if [ ! -e "$packages/.done" ]; then
  rm -rf "$packages"
  mkdir -p "$packages"
  abi=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  for wheel in "$kit"/wheels/*-none-any.whl "$kit"/wheels/*-"$abi"-*.whl; do
    [ -e "$wheel" ] || { say "no packages for $abi among the wheels: the peers need wrapt and dm-tree from elsewhere"; continue; }
    # What the machine has stays its own.
    name=$(basename "$wheel"); name=${name%%-*}
    "$python" -c 'import importlib.metadata as m, sys; m.version(sys.argv[1])' "$name" 2>/dev/null ||
      "$python" -m zipfile -e "$wheel" "$packages" || exit 1
  done
  touch "$packages/.done"
fi
# A script, so that podracer's own children do not get these packages.
printf '#!/bin/sh\nPYTHONPATH="%s${PYTHONPATH:+:$PYTHONPATH}" exec "%s" "$@"\n' "$packages" "$python" >"$results/python"
chmod +x "$results/python"
export PODRACER_PEER_PYTHON=$results/python PODRACER_PEER_SCRIPTS=$kit/peer PODRACER_TEST_PLATFORM=$platform
# Compiled programs and run directories stay in the results.
export XDG_CACHE_HOME=$results/cache

# step NAME ARGUMENTS..: one command of the kit, its lines kept when it ends well.
failed=0
step() {
  local name=$1
  shift
  if [ -e "$results/$name.jsonl" ]; then say "$name: done before"; return; fi
  say "$name: podracer kit $* (at most $limit s)"
  local start=$SECONDS
  timeout --kill-after=10 "$limit" "$kit/podracer" kit "$@" 2>&1 >"$results/$name.part" | tee "$results/$name.log" >&2
  local status=${PIPESTATUS[0]}
  if [ "$status" -eq 0 ]; then
    mv "$results/$name.part" "$results/$name.jsonl"
    say "$name: done in $((SECONDS - start)) s"
  else
    failed=1
    say "$name: FAILED with status $status after $((SECONDS - start)) s; what it printed is in $results/$name.part and $name.log"
  fi
}

each() { # STEP ARGUMENTS.. -- N..: a step for each number of environments
  local name=$1 arguments=() count
  shift
  while [ "$1" != -- ]; do arguments+=("$1"); shift; done
  shift
  for count in "$@"; do step "$name-$count" "${arguments[@]}" --environments="$count"; done
}

make_step() {
  local what=$1
  shift
  case $what in
    # A check that fails leaves its lines too: they belong into the report.
    check)
      local number name
      for number in 1 2 3 4 5 6 7 8 9 10 11 12; do
        name=check-$number
        step "$name" check --number="$number"
        rm -f "$results/$name-failed.jsonl"
        if [ -e "$results/$name.part" ]; then cp "$results/$name.part" "$results/$name-failed.jsonl"; fi
      done
      ;;
    ppo) each ppo ppo --platform="$platform" --rounds="${ROUNDS:-1}" -- ${@:-64 512 4096 16384 65536} ;;
    anakin) each anakin ppo --task=catch-online --platform="$platform" --rounds="${ROUNDS:-1}" -- ${@:-64 4096 65536} ;;
    envs) each envs envs --platform="$platform" --rounds="${ROUNDS:-1}" -- ${@:-1024 16384 65536} ;;
    search)
      local roots
      for roots in ${@:-1 32 256 1024}; do
        step "search-$roots" search --platform="$platform" --batches="$roots" --simulations=50 --actions=18 \
          --work=$((2000 * roots)) --rounds="${ROUNDS:-1}"
      done
      ;;
    impala) step impala impala --platform="$platform" --rounds="${ROUNDS:-2}" ;;
    variants)
      local number
      for number in 0 1 2 3 4 5; do step "variant-$number" variant --platform="$platform" --number="$number"; done
      PODRACER_GPU_MEMORY=0.75 step variant-memory variant --platform="$platform" --number=0
      ;;
    compile)
      [ -n "$cuda" ] || { say "no ptxas: pip install nvidia-cuda-nvcc nvidia-nvvm, and CUDA_DATA=.../nvidia/cu13"; failed=1; return; }
      XLA_FLAGS='' step compile compile --cuda="$cuda"
      ;;
    report) "$kit/podracer" kit report "$results" || failed=1 ;;
    podracer) exec "$kit/podracer" "$@" ;;
    *) sed -n '2,/^set/{/^#/p}' "$0" >&2; failed=1 ;;
  esac
}

if [ $# -gt 0 ]; then
  make_step "$@"
else
  for what in check ppo anakin envs search impala variants report; do make_step "$what"; done
fi
exit $failed
