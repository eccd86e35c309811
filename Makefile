# SPDX-License-Identifier: Apache-2.0
# Only forwards; the work is in meson and scripts/.
BUILD ?= build
LAYOUT = docs/spec/layout.txt
DECLARATIONS = bindings/python/penstock/_c.py

.PHONY: build demo check test test-more attack benchmark declarations format doc install wheel deb clean

build:
	@scripts/build $(BUILD)

demo:
	@scripts/build $(BUILD) src/cli/penstock tests/make_images examples/example_loader
	@scripts/demo $(BUILD)

# After each change: one compiler, no slow tests.
check:
	@scripts/deps test
	@scripts/test --check

test:
	@scripts/deps test
	@scripts/test

# What takes many minutes, or gigabytes from PyPI.
test-more:
	@scripts/deps more
	@scripts/test --more

# For hours, outside of CI: make attack ONLY="kills disk" SEED=7 MINUTES=15 COUNT=100 RECORDS=1000 CASE=pack
attack:
	@scripts/deps test
	@tests/attack/run $(ONLY) $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) \
	    $(if $(COUNT),--count $(COUNT)) $(if $(RECORDS),--records $(RECORDS)) $(if $(CASE),--case $(CASE))

benchmark: build
	@meson test -C $(BUILD) --benchmark --verbose

# After a change of include/penstock/*.h.
declarations:
	@scripts/declarations python > $(DECLARATIONS).new && mv $(DECLARATIONS).new $(DECLARATIONS)
	@scripts/declarations layout > $(LAYOUT).new && mv $(LAYOUT).new $(LAYOUT)

format:
	@scripts/deps test
	@scripts/sources | xargs clang-format -i

# A site in build-doc/, from the headers, the docstrings and the pages below docs/.
doc:
	@scripts/deps wheel
	@scripts/build $(BUILD) src/cli/penstock
	@scripts/doc $(BUILD)

install: build
	@meson install -C $(BUILD)

wheel:
	@scripts/deps wheel
	@scripts/wheel

deb:
	@scripts/deps deb
	@scripts/deb

clean:
	rm -rf build build-* demo
