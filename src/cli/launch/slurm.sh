#!/bin/bash
# A training of @processes@ processes. Slurm starts it again where a machine was lost, and it goes on from its last checkpoint.
#SBATCH --job-name=@experiment@
#SBATCH --ntasks=@processes@
#SBATCH --cpus-per-task=@cores@
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=@printed@
set -euo pipefail
cd @directory@
# For MPICH: --mpi=pmi2.
exec srun --mpi=pmix @command@
