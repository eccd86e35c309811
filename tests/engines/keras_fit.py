# SPDX-License-Identifier: Apache-2.0
"""Keras 3: keras_fit.py OUT [CHECKPOINT]. It saves model and epoch after the first epoch, and goes on from CHECKPOINT.
It leaves what it saw in OUT."""
import json
import pathlib
import sys

import keras
import numpy

import penstock


class Batches(keras.utils.PyDataset):
    """The epochs of a loader. With fit(shuffle=False) Keras asks for 0, 1, 2 ..."""

    def __init__(self, loader, epoch=0):
        super().__init__()
        self.loader, self.epoch, self.number, self.rest = loader, epoch, 0, iter(())

    def __len__(self):
        return len(self.loader)

    def __getitem__(self, number):
        if number == 0:
            # fit() looks at a first batch before it begins
            self.epoch += self.number == len(self)
            self.rest, self.number = self.loader.epoch(self.epoch), 0
        if number != self.number:
            raise IndexError(
                f"batch {number} after {self.number - 1}: give fit() shuffle=False")
        self.number += 1
        return tuple(next(self.rest))


class Notes(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.weights, self.epochs, self.val = [], [], []

    def on_train_batch_end(self, batch, logs=None):
        self.weights.append([float(v) for w in self.model.get_weights() for v in numpy.ravel(w)])

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(epoch)
        self.val.append(logs["val_loss"])


def built():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.set_weights([numpy.arange(4, dtype="f4").reshape(4, 1) / 8, numpy.full(1, 0.5, "f4")])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    return model


def main(out, checkpoint=None):
    notes = Notes()
    first = 0 if checkpoint is None else int(pathlib.Path(checkpoint).stem)
    model = built() if checkpoint is None else keras.models.load_model(checkpoint)
    save = keras.callbacks.ModelCheckpoint(f"{out}/{{epoch}}.keras")
    train = penstock.Loader("train", batch_size=8, seed=3, outputs=["x", "y"],
                            framework="numpy")
    val = penstock.Loader("val", batch_size=4, shuffle=False, last_batch="short",
                          outputs=["x", "y"], framework="numpy")
    model.fit(Batches(train, first), initial_epoch=first, epochs=2, shuffle=False,
              validation_data=Batches(val),
              callbacks=[save, notes], verbose=0)
    seen = {"weights": notes.weights, "epochs": notes.epochs, "val": notes.val, "backend": keras.backend.backend()}
    pathlib.Path(out, "0.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
