# SPDX-License-Identifier: Apache-2.0
"""Ray Train on a cluster of this machine: an epoch, and a worker that fails and goes on from its checkpoint."""
import json
import os
import pathlib
import unittest

import sets
from data_fixture import optional
from engine import HERE, EngineCase

optional("torch")
ray = optional("ray")
optional("ray.train")
ray_loops = optional("ray_loops")


class RayTrain(EngineCase):
    @classmethod
    def setUpClass(cls):
        names = ("PYTHONPATH", "PENSTOCK_LIBRARY")
        variables = {name: os.environ[name] for name in names if name in os.environ}
        variables["PYTHONPATH"] = os.pathsep.join([variables.get("PYTHONPATH", ""), str(HERE)])
        ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                 runtime_env={"env_vars": {**variables, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}})
        cls.addClassCleanup(ray.shutdown)

    def configuration(self, **keywords):
        from ray.train import RunConfig
        return {"train_loop_config": {"data": sets.scalars(), "out": self.out},
                "run_config": RunConfig(storage_path=self.out + "/results", **keywords)}

    def test_an_epoch(self):
        from ray.train import ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer
        TorchTrainer(ray_loops.epoch, torch_config=TorchConfig(backend="gloo"), scaling_config=ScalingConfig(num_workers=2),
                     **self.configuration()).fit()
        self.check_epoch(2, "torch.distributed", "gloo")

    def test_a_worker_that_fails(self):
        from ray.train import FailureConfig, ScalingConfig
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
        result = DataParallelTrainer(ray_loops.training, scaling_config=ScalingConfig(num_workers=2),
                                     **self.configuration(failure_config=FailureConfig(max_failures=1))).fit()
        self.assertTrue(pathlib.Path(self.out, "failed").exists())
        self.assertEqual((result.metrics["step"], result.metrics["resumed"]), (10, True))
        found = [json.loads(path.read_text()) for path in pathlib.Path(self.out).glob("*.ids")]
        self.assertEqual(len(found), 20)
        self.assertEqual(sorted(sum(found, [])), list(range(2000)))


if __name__ == "__main__":
    unittest.main()
