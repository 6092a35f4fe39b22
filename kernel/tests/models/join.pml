/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A joiner says who it is (docs/protocol.md, section 1, "Identity"; join.c, introduce()).
 *
 * One slot and three systems. Each takes the slot, stores the epoch that it begins with, who it is,
 * and the incarnation for which that is true; then it acknowledges epochs. Fencer takes the slot away
 * from a system that has not said its name, wherever that one is: the system is only paused, and
 * goes on when the slot is another one's.
 *
 * Checked: nobody is fenced who has said its name; no epoch counts as acknowledged by a system that
 * lives and has not acknowledged it; and when no joiner is under way the name in the slot is that of
 * its owner (or there is a deadlock).
 *
 * Of an identity there is one word here: each is stored by itself, and mended by itself. Recovery is
 * death.pml's: the slot of who is fenced is free. Sequentially consistent: the swaps are locked
 * instructions, and loads of one CPU keep their order.
 *
 * check:
 * mutant: EPOCH_LOADED_LATE
 * mutant: NAMED_STORED
 * mutant: NOT_LOOKED
 * mutant: NOT_MENDED
 */
#define N	3
#define EPOCHS	3
#define FENCES	2

bool live;
byte owner, inc, incs;			/* of the slot; owner: the system that has it */
byte epoch = 1, named, machine;		/* of the slot */
byte hot = 1;
byte acked[N];				/* the last epoch that a system has acknowledged */
bool said[N], over[N];
byte fences;

#define MINE	(live && inc == mine)
#define OTHERS_OVER	((p == 0 || over[0]) && (p == 1 || over[1]) && (p == 2 || over[2]))

/* Nor has it acknowledged this epoch then. */
inline load_epoch() {
	d_step { val = hot; acked[p] = hot }
}

proctype System(byte p) {
	byte mine, val, seen;

	atomic {
		!live -> incs++; mine = incs; inc = incs; owner = p; live = true;
		acked[p] = hot		/* it has looked at nothing yet */
	};

	/* the epoch: one that is too old only delays others */
#ifndef MUTANT_EPOCH_LOADED_LATE
	load_epoch();
#endif
#ifndef MUTANT_NOT_LOOKED
	if
	:: atomic { !MINE -> goto dead }
	:: MINE
	fi;
#endif
#ifdef MUTANT_EPOCH_LOADED_LATE
	load_epoch();
#endif
	epoch = val;

who:	/* the identity */
	if
	:: atomic { !MINE -> goto dead }
	:: MINE
	fi;
	machine = mine;
again_named:
	seen = named;
	if
	:: atomic { !MINE -> goto dead }
	:: MINE
	fi;
#ifdef MUTANT_NAMED_STORED
	atomic { named = mine; said[p] = MINE };
#else
	if
	:: atomic { named == seen -> named = mine; said[p] = MINE }
	:: atomic { named != seen -> goto again_named }
	fi;
#endif

idle:	/* sg_maintain() */
	if
	:: atomic { !MINE -> goto dead }
#ifndef MUTANT_NOT_MENDED
	:: atomic { MINE && (named != mine || machine != mine) -> goto who }
#endif
	:: atomic { MINE && epoch != hot -> acked[p] = hot; epoch = hot; goto idle }
	:: atomic {
		MINE && named == mine && machine == mine && OTHERS_OVER ->
		live = false; goto dead
	}
	/* it leaves without waiting: the next system may join */
	:: atomic { MINE && named == mine && !OTHERS_OVER -> live = false; goto dead }
	fi;
dead:
	atomic { said[p] = false; over[p] = true }
}

/* hot.epoch grows when all live systems have acknowledged it. */
proctype Epochs() {
end:	do
	:: atomic {
		hot < EPOCHS && (!live || epoch >= hot) ->
		assert(!live || acked[owner] >= hot);
		hot++
	}
	od
}

/* UNNAMED_MS have passed. */
proctype Fencer() {
end:	do
	:: atomic {
		live && named != inc && fences < FENCES ->
		assert(!said[owner]);
		fences++; live = false
	}
	od
}

init {
	atomic { run Epochs(); run Fencer(); run System(0); run System(1); run System(2) }
}
