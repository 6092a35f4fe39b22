# SPDX-License-Identifier: Apache-2.0
#
# The engine, the tools and the native test programs. Several builds use one set of sources: each
# SAN= variant has a tree of its own (build/asan, ...), so that a change of SAN= rebuilds nothing.

B := build$(if $(SAN),/$(SAN))
PREFIX ?= /usr/local

ifeq ($(origin CC),default)
CC := $(if $(filter fuzz,$(SAN)),clang,gcc)
endif

san-asan  := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# TSan does not model the fences of sg_os.h, and the compiler warns of them.
san-tsan  := -fsanitize=thread -Wno-tsan
san-cov   := --coverage -O0
# `rec` is not a sanitizer, but is built the same way: the engine reports every store to a recorder.
san-rec   := -DSG_RECORD
# With `hostile`, the engine calls an attacker at each load and store.
san-hostile := $(san-asan) -DSG_HOSTILE
# With `lines`, the calls that the compiler makes for ThreadSanitizer reach kernel/tests/lines,
# which counts the engine's accesses. The flags keep copies as calls of memcpy(), so that it counts
# these, too.
san-lines := -fsanitize=thread -Wno-tsan -DSG_LINES -fno-builtin-memcpy -fno-builtin-memset \
	-U_FORTIFY_SOURCE
# `cow` copies pages on write, for comparison (kernel/tests/atomic); `cow-rec` also records.
san-cow   := -DSG_COW
san-cow-rec := -DSG_COW -DSG_RECORD
san-fuzz  := -fsanitize=address,undefined -fno-sanitize-recover=undefined

# ccache compiles a source only once, even for several copies of the tree (DEPS_RUNNER has ccache).
ccache := $(shell command -v ccache)
export CCACHE_DIR ?= $(or $(STARGATE_CACHE),$(HOME)/.cache/stargate)/ccache
export CCACHE_NOHASHDIR := 1

ifneq ($(SAN),)
ifeq ($(origin san-$(SAN)),undefined)
$(error SAN=$(SAN) is unknown: use one of asan, tsan, cov, rec, lines, fuzz, hostile, cow, cow-rec)
endif
endif

# The flags below are always used. Users may add their own in CFLAGS and LDFLAGS.
sg-cflags := -O2 -g -Wall -Wextra -Werror -std=gnu11 -pthread $(san-$(SAN)) $(CFLAGS)
sg-incs   := -Ikernel/core -Ikernel/tools/lib -Ikernel/lib
sg-ldflags := -pthread $(if $(filter lines,$(SAN)),,$(san-$(SAN))) $(LDFLAGS)
fuzz-cflags := $(if $(filter fuzz,$(SAN)),-fsanitize=fuzzer-no-link)

# --- sources and results: wildcards find a new file without an edit here ---
objs = $(patsubst kernel/%.c,$(B)/obj/%.o,$(1))
core-src    := $(wildcard kernel/core/*/*.c)
toollib-src := $(wildcard kernel/tools/lib/*.c)
# libstargate, for users' programs. The engine has another archive, which is never installed.
userlib-src := $(wildcard kernel/lib/*.c)
# Crash tests and their recorder need an engine that reports its stores (SG_RECORD).
testlib-src := $(wildcard kernel/tests/lib/*.c)
test-src    := $(wildcard kernel/tests/native/*_test.c)
ifeq ($(SAN),rec)
test-src    := $(filter kernel/tests/native/crash%,$(test-src))
else
test-src    := $(filter-out kernel/tests/native/crash%,$(test-src))
ifneq ($(SAN),cow-rec)
testlib-src := $(filter-out %/record.c,$(testlib-src))
endif
endif
fuzz-src    := $(wildcard kernel/tests/fuzz/*_fuzz.c)
fuzzlib-src := $(filter-out $(fuzz-src) %/replay.c %/make_corpus.c, \
	$(wildcard kernel/tests/fuzz/*.c))

lib-core := $(B)/core/libstargate.a
lib-tool := $(B)/tools/lib.a
lib-test := $(B)/tests/lib.a
lib-user := $(B)/lib/libstargate.a
lib-version := 1.0.0
lib-shared := $(B)/lib/libstargate.so.$(lib-version)
# The engine and the tools' library call each other, and the library's commands call libstargate. So
# the linker must search the three archives as one group.
engine-libs = -Wl,--start-group $(filter $(lib-user),$^) $(lib-tool) $(lib-core) -Wl,--end-group

tool-dir-mkfs.stargatefs := mkfs
tool-dir-fsck.stargatefs := fsck
tool-dir-stargatectl     := ctl
tool-dir-stargate-sem    := sem
tool-dir-stargate-ring   := ring
tool-dir-stargate-net    := net
tool-dir-stargatefs-fuse := fuse
tools := mkfs.stargatefs fsck.stargatefs stargatectl stargate-sem stargate-ring stargate-net \
	stargatefs-fuse
user-tools := stargate-sem stargate-ring
tool-bins := $(tools:%=$(B)/tools/%)

test-bins   := $(test-src:kernel/tests/native/%.c=$(B)/tests/%)
# This program is not a test: the test of the guard starts it as a system.
machine     := $(if $(SAN),,$(B)/tests/machine)
replay-bins := $(if $(filter rec,$(SAN)),,$(fuzz-src:kernel/tests/fuzz/%_fuzz.c=$(B)/replay/%))
hostile-src := $(wildcard kernel/tests/hostile/*.c)
lines-src   := $(wildcard kernel/tests/lines/*.c)
fuzz-bins   := $(fuzz-src:kernel/tests/fuzz/%.c=build/fuzz/bin/%)

# --- targets ---
.PHONY: core tools lib test-programs install-tools deps-native
core: $(lib-core)
tools: $(tool-bins)
lib: $(lib-user) $(lib-shared) $(B)/lib/stargate.pc
test-programs: $(test-bins) $(machine) $(replay-bins) $(if $(SAN),,$(B)/tests/make_corpus)

deps-native:
	@mk/tools/deps native $(filter fuzz,$(SAN))

# If there are no sources for a target, make fails with a message.
need = $(if $(strip $(1)),,echo "$@: no $(2) to build it from" >&2; exit 1)

# make builds each object and program again when its flags change (STATIC=1, CC=...).
stamp = @mkdir -p $(@D); echo '$(1)' | cmp -s - $@ || echo '$(1)' > $@
.PHONY: always
$(B)/.cflags: always
	$(call stamp,$(CC) $(sg-cflags) $(fuzz-cflags))
$(B)/.ldflags: always
	$(call stamp,$(CC) $(sg-ldflags) static=$(STATIC))
# make builds each archive again when its list of files changes.
$(B)/.members: always
	$(call stamp,$(core-src) $(toollib-src) $(userlib-src) $(testlib-src) $(fuzzlib-src))

$(B)/obj/%.o: kernel/%.c $(B)/.cflags | deps-native
	@mkdir -p $(@D)
	@echo '  CC    $@'
	$(Q)$(ccache) $(CC) $(sg-cflags) $(fuzz-cflags) $(sg-incs) -MMD -MP -c -o $@ $<
$(B)/obj/tests/%.o: sg-incs += -Ikernel/tests/lib
$(B)/obj/lib/%.o: sg-incs := -Ikernel/core -Ikernel/lib -fPIC -fvisibility=hidden

define archive
	@mkdir -p $(@D); rm -f $@
	@echo '  AR    $@'
	$(Q)ar rcs $@ $(filter %.o,$^)
endef
$(lib-core): $(call objs,$(core-src)) $(B)/.members
	@$(call need,$(core-src),kernel/core/*/*.c)
	$(archive)
$(lib-tool): $(call objs,$(toollib-src)) $(B)/.members
	$(archive)
$(lib-user): $(call objs,$(userlib-src)) $(B)/.members
	$(archive)
$(lib-shared): $(call objs,$(userlib-src)) kernel/lib/stargate.map $(B)/.ldflags
	@echo '  LINK  $@'
	$(Q)$(CC) $(sg-ldflags) -shared -Wl,-soname,libstargate.so.1 -Wl,-z,defs \
		-Wl,--version-script=kernel/lib/stargate.map -o $@ $(filter %.o,$^)
	$(Q)ln -sf $(@F) $(@D)/libstargate.so.1; ln -sf $(@F) $(@D)/libstargate.so
$(B)/lib/stargate.pc: kernel/lib/stargate.pc.in always
	@mkdir -p $(@D)
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(lib-version)|' $< | cmp -s - $@ || \
		sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(lib-version)|' $< >$@
$(lib-test): $(call objs,$(testlib-src)) $(B)/.members
	$(archive)

define link
	@mkdir -p $(@D)
	@echo '  LINK  $@'
	$(Q)$(CC) $(sg-ldflags) $(1) -o $@ $(filter %.o,$^) $(filter $(lib-test),$^) $(engine-libs)
endef

define tool-rule
tool-src-$(1) := $$(wildcard kernel/tools/$(tool-dir-$(1))/*.c)
$(B)/tools/$(1): $$(call objs,$$(tool-src-$(1))) $(lib-user) $(lib-tool) $(lib-core) $(B)/.ldflags
	@$$(call need,$$(tool-src-$(1)),kernel/tools/$(tool-dir-$(1))/*.c)
	$$(call link,$$(if $$(STATIC),-static))
endef
$(foreach t,$(tools),$(eval $(call tool-rule,$(t))))

$(test-bins) $(machine): $(B)/tests/%: $(B)/obj/tests/native/%.o \
		$(lib-user) $(lib-test) $(lib-tool) $(lib-core) $(B)/.ldflags
	$(call link,$(wrapped:%=-Wl,--wrap=%))
# These programs emulate the kernel for libstargate (sem_kernel.h).
$(B)/tests/libstargate_test $(B)/tests/ring_test $(B)/tests/ring_forged_test \
$(B)/tests/stream_test $(B)/tests/stream_kill_test \
$(B)/tests/sem_posix_test: \
	wrapped := open close ioctl posix_fadvise mmap munmap stat fstat statfs
$(replay-bins): $(B)/replay/%: $(B)/obj/tests/fuzz/%_fuzz.o $(B)/obj/tests/fuzz/replay.o \
		$(call objs,$(fuzzlib-src)) $(lib-test) $(lib-tool) $(lib-core) $(B)/.ldflags
	$(call link)

# An attacker, which the engine calls, stores arbitrary data during operations (SG_HOSTILE).
.PHONY: hostile-program
ifeq ($(SAN),hostile)
hostile-program: $(B)/tests/hostile
$(B)/tests/hostile: $(call objs,$(hostile-src)) $(lib-test) $(lib-tool) $(lib-core) $(B)/.ldflags
	$(call link)
else
hostile-program:
	@$(MAKE) --no-print-directory SAN=hostile $@
endif

# Counts the cache lines that systems take from each other: the compiler adds calls to
# kernel/tests/lines/counter.c.
.PHONY: lines-program
ifeq ($(SAN),lines)
lines-program: $(B)/tests/lines
$(call objs,$(lines-src)): sg-cflags += -fno-sanitize=thread
$(B)/tests/lines: $(call objs,$(lines-src)) $(lib-test) $(lib-tool) $(lib-core) $(B)/.ldflags
	$(call link,$(wrapped:%=-Wl,--wrap=%))
$(B)/tests/lines: wrapped := memcpy memset sg_wb sg_os_clear sg_fence sg_cpu sg_random sg_alloc \
	sg_look_begin sg_look_end sg_look_wait
else
lines-program:
	@$(MAKE) --no-print-directory SAN=lines $@
endif

# Measures the cost of large volumes, many files and many systems; e2e/bench/scale also counts its
# memory.
.PHONY: scale-program
scale-program: $(B)/tests/scale
$(B)/tests/scale: $(B)/obj/tests/scale/scale.o $(lib-test) $(lib-tool) $(lib-core) $(B)/.ldflags
	$(call link,$(wrapped:%=-Wl,--wrap=%))
$(B)/tests/scale: wrapped := sg_alloc sg_free

# Measures the cost of atomic writes, beside writes in place and copies of pages.
.PHONY: atomic-program
atomic-program: $(B)/tests/atomic
atomic-src := $(wildcard kernel/tests/atomic/*.c)
$(B)/tests/atomic: $(call objs,$(atomic-src)) $(lib-test) $(lib-tool) $(lib-core) $(B)/.ldflags
	$(call link)

# Makes the seeds of the fuzzers. Make them again when a fuzzer reads its input in another format.
.PHONY: corpus
corpus: $(B)/tests/make_corpus
	rm -rf kernel/tests/fuzz/corpus
	$< kernel/tests/fuzz/corpus
$(B)/tests/make_corpus: $(B)/obj/tests/fuzz/make_corpus.o $(call objs,$(fuzzlib-src)) \
		$(lib-test) $(lib-tool) $(lib-core) $(B)/.ldflags
	$(call link)

# The fuzzers need clang, even if another compiler builds the other programs. Therefore they have
# SAN=fuzz.
ifeq ($(SAN),fuzz)
$(fuzz-bins): build/fuzz/bin/%: $(B)/obj/tests/fuzz/%.o $(call objs,$(fuzzlib-src)) \
		$(lib-test) $(lib-tool) $(lib-core) $(B)/.ldflags
	$(call link,-fsanitize=fuzzer)
else
$(fuzz-bins): build/fuzz/bin/%: always
	@$(MAKE) --no-print-directory SAN=fuzz $@
endif

# stargate-tune and stargate-vsched have targets of their own (parts.mk).
man-pages   := $(filter-out %/stargate-tune.8 %/stargate-vsched.8, \
	$(wildcard kernel/tools/man/*.[1-8] kernel/lib/man/*.[1-8]))
completions := $(filter-out %/stargate-tune %/stargate-vsched,$(wildcard kernel/tools/completion/*))
udev-rules  := $(wildcard kernel/tools/udev/*.rules.in)
install-tools: tools lib
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(filter-out $(user-tools:%=$(B)/tools/%),$(tool-bins)) \
		$(DESTDIR)$(PREFIX)/sbin
	install -m 755 $(user-tools:%=$(B)/tools/%) $(DESTDIR)$(PREFIX)/bin
	install -D -m 644 kernel/lib/stargate.h $(DESTDIR)$(PREFIX)/include/stargate.h
	install -D -m 644 $(B)/lib/stargate.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig/stargate.pc
	install -m 644 $(lib-user) $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(lib-shared) $(DESTDIR)$(PREFIX)/lib
	cp -P $(B)/lib/libstargate.so $(B)/lib/libstargate.so.1 $(DESTDIR)$(PREFIX)/lib
	$(foreach m,$(man-pages),install -D -m 644 $(m) \
		$(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(m)))/$(notdir $(m));)
	$(foreach c,$(completions),install -D -m 644 $(c) \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$(notdir $(c));)
	install -d $(DESTDIR)$(PREFIX)/lib/udev/rules.d
	$(foreach r,$(notdir $(udev-rules:.in=)), \
		sed 's|@SBIN@|$(PREFIX)/sbin|' kernel/tools/udev/$(r).in \
		>$(DESTDIR)$(PREFIX)/lib/udev/rules.d/$(r) && \
		chmod 644 $(DESTDIR)$(PREFIX)/lib/udev/rules.d/$(r);)

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
