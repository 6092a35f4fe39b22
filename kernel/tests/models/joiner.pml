/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joiners that find no free slot, and are paused for long (docs/protocol.md, section 1).
 *
 * A system died in the middle of a transaction of two words: it left a lock, and a journal record.
 * Two joiners request its slot. A third system, in another slot, recovers it, or uses the lock when
 * that is free. A joiner that recovers the slot acts for the slot. The process Fencer fences such a
 * joiner, PAUSES times, although it is only paused. The joiner continues at any time after that,
 * detects the fence at its next check of the slot's word, and joins again. Between a check and the
 * following store, no system is paused for long (docs/protocol.md, "Limits of the lease").
 *
 * death.pml has systems that die, and waits for locks; its joiners are not paused.
 *
 * Checked: only one recoverer makes the stores of a replay and frees the slot. A system that gets
 * the lock sees exactly the committed values. The slot's recovery ends.
 *
 * check: PAUSES=1
 * check: PAUSES=4
 * mutant: SAME_WORD PAUSES=1
 * mutant: LOOKS_ONCE PAUSES=1
 * mutant: FREE_UNSEEN PAUSES=1
 */
#ifndef PAUSES
#define PAUSES 1
#endif
#define JOINERS 2
#define NOBODY	255
#define OTHER	JOINERS		/* the system in the other slot */

/* sg_slot.state of the slot: state, incarnation, recoverer; and the volume's incarnations. */
mtype = { FREE, LIVE, DEAD, RECOVERING };
mtype state = DEAD;
bool by_itself;
byte inc = 1, by_inc, drawn = 1;

/*
 * The words, and the record of the slot. The model keeps the age of a value instead of the value:
 * the number of commits (2: or more) since it was current.
 */
byte word_a = 1, word_b = 1, area_val;
bool area_head = true;

byte recoverer = NOBODY;	/* for the checks: the system that made the swap */
byte pauses;
bool storing[JOINERS], joined;

#define GONE	(state == FREE || state == LIVE)	/* the dead system's locks are free */

/* The word that joiner @p stores while it recovers the slot and acts for it. */
#ifdef MUTANT_SAME_WORD
#define OUR_WORD	inc
#else
#define OUR_WORD	my_inc
#endif
#define OURS	(state == RECOVERING && by_itself && by_inc == OUR_WORD)

inline swap(p, itself, word) {
	state = RECOVERING; by_itself = itself; by_inc = word; recoverer = p
}
inline release() {
	state = FREE; by_itself = false; by_inc = 0; recoverer = NOBODY
}

/* may_replay(), then a store */
inline look() {
	if
	:: atomic { OURS -> storing[p] = true }
#ifdef MUTANT_LOOKS_ONCE
	:: atomic { looked -> storing[p] = true }
	:: atomic { !looked && !OURS -> goto join }
#else
	:: atomic { !OURS -> goto join }
#endif
	fi;
	looked = true
}

proctype Joiner(byte p) {
	byte my_inc;
	bool looked;

join:	/* sg_slot_take() always takes an incarnation */
	atomic { looked = false; drawn++; my_inc = drawn };
	if
	:: d_step { state == FREE -> state = LIVE; inc = my_inc; joined = true }; goto end
	:: d_step { state == DEAD -> swap(p, true, OUR_WORD) }
	/* the other joiner has the slot: all slots are in use */
	:: atomic { joined -> goto end }
	fi;
	/* sg_tx_replay() */
	if
	:: atomic { area_head -> skip };
		look();
		d_step { assert(recoverer == p); word_a = area_val; storing[p] = false };
		look();
		d_step { assert(recoverer == p); word_b = area_val; storing[p] = false };
		look();
		d_step { assert(recoverer == p); area_head = false; area_val = 0; storing[p] = false }
	:: atomic { !area_head -> skip }
	fi;
#ifdef MUTANT_FREE_UNSEEN
	d_step { assert(recoverer == p); release() };
#else
	if
	:: d_step { OURS -> assert(recoverer == p); release() }
	:: atomic { !OURS -> skip }
	fi;
#endif
	goto join;
end:	false
}

/* Recovers a dead slot. Then makes its own transactions with the lock, which is free now. */
proctype Other() {
	byte commits;

end:	do
	:: d_step { state == DEAD -> swap(OTHER, false, 1) };
		if
		:: atomic { area_head -> skip };
			d_step { assert(recoverer == OTHER); word_a = area_val };
			d_step { assert(recoverer == OTHER); word_b = area_val };
			d_step { assert(recoverer == OTHER); area_head = false; area_val = 0 }
		:: atomic { !area_head -> skip }
		fi;
		d_step { assert(recoverer == OTHER); release() }
	:: atomic { GONE && commits < 2 -> assert(!word_a && !word_b && !area_head) };
		d_step {
			commits++; word_a = 1; word_b = 1;
			area_val = (area_head && area_val < 2 -> area_val + 1 : area_val)
		};
		word_a = 0;
		word_b = 0
	od
}

proctype Fencer() {
end:	do
	:: d_step {
		state == RECOVERING && by_itself && pauses < PAUSES && !storing[recoverer] ->
		pauses++; state = DEAD; by_itself = false; by_inc = 0; recoverer = NOBODY
	}
	od
}

init {
	atomic { run Joiner(0); run Joiner(1); run Other(); run Fencer() }
}
