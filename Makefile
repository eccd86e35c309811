# SPDX-License-Identifier: Apache-2.0
# Only forwards; the work is in meson and scripts/.
BUILD ?= build

.PHONY: build demo test attack benchmark format install wheel clean

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

demo: $(BUILD)/build.ninja
	@ninja -C $(BUILD) src/cli/penstock tests/make_images examples/example_loader
	@scripts/demo $(BUILD)

test:
	@scripts/deps test
	@scripts/test

# For hours, outside of CI: make attack ONLY="kills disk" SEED=7 MINUTES=15 COUNT=100 RECORDS=1000 CASE=pack
attack:
	@scripts/deps test
	@tests/attack/run $(ONLY) $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) \
	    $(if $(COUNT),--count $(COUNT)) $(if $(RECORDS),--records $(RECORDS)) $(if $(CASE),--case $(CASE))

benchmark: build
	@meson test -C $(BUILD) --benchmark --verbose

format:
	@scripts/deps test
	@scripts/sources | xargs clang-format -i

install: build
	@meson install -C $(BUILD)

wheel:
	@scripts/deps wheel
	@scripts/wheel

clean:
	rm -rf build build-* demo

$(BUILD)/build.ninja:
	@scripts/deps build
	@meson setup $(BUILD)
