# SPDX-License-Identifier: Apache-2.0
"""Trainer of Hugging Face: hf_trainer.py OUT [CHECKPOINT]. It accumulates two batches a step, evaluates, saves a
checkpoint after each step, and goes on from CHECKPOINT. Each process leaves what it saw in OUT."""
import json
import pathlib
import sys

import plain
import torch
import transformers

import penstock


class Trainer(transformers.Trainer):
    """Batches are dicts whose names are the arguments of the model's forward()."""

    def open(self, path, **settings):
        return penstock.Loader(path, ranks="auto", device=self.args.device,
                               framework="torch",
                               memory=penstock.Memory(
                                   n_slots=self.args.gradient_accumulation_steps + 2),
                               **settings,
                               outputs={"x": "x", "labels": "y"})

    def get_train_dataloader(self):
        loader = self.open("train", batch_size=penstock.GlobalBatch(8), seed=3)
        if self.checkpoint is not None:
            loader.load_state_dict(
                json.loads(pathlib.Path(self.checkpoint, "loader.json").read_text()))
        return loader

    def get_eval_dataloader(self, eval_dataset=None):
        return self.open("val", batch_size=penstock.GlobalBatch(4), shuffle=False,
                         last_batch="short")


class SaveLoader(transformers.TrainerCallback):
    def on_save(self, args, state, control, train_dataloader, **_more):
        if state.is_world_process_zero:
            path = pathlib.Path(args.output_dir, f"checkpoint-{state.global_step}",
                                "loader.json")
            path.write_text(json.dumps(train_dataloader.state_dict()))


class Model(torch.nn.Module):
    def __init__(self, seen):
        super().__init__()
        self.network, self.seen = plain.network(), seen

    def forward(self, x, labels):
        loss = torch.nn.functional.mse_loss(self.network(x), labels)
        if self.training:
            self.seen["losses"].append(loss.item())
            self.seen["x"].append(x.tolist())
        return {"loss": loss, "predicted": self.network(x)}


def main(out, checkpoint=None):
    seen = {"losses": [], "x": [], "epochs": []}
    args = transformers.TrainingArguments(
        out, use_cpu=True, num_train_epochs=2, gradient_accumulation_steps=2, save_steps=1, eval_strategy="epoch",
        ignore_data_skip=True,  # the loader goes on by itself
        optim="sgd", learning_rate=0.1, lr_scheduler_type="constant", max_grad_norm=0.0, logging_steps=1,
        report_to="none", disable_tqdm=True)
    trainer = Trainer(Model(seen), args, callbacks=[SaveLoader()],
                      eval_dataset=penstock.Dataset("val"))
    trainer.checkpoint = checkpoint
    trainer.train(resume_from_checkpoint=checkpoint)
    seen["val"] = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
    seen["epochs"] = [entry["epoch"] for entry in trainer.state.log_history if "loss" in entry]
    seen["weights"] = plain.weights_of(trainer.model)
    pathlib.Path(out, f"{args.process_index}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
