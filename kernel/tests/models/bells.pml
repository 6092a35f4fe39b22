/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doorbells: a store of one system wakes a sleeper of another one (docs/doorbells.md).
 *
 * A giver increments a word ROUNDS times, and a sleeper of another system takes each unit. The
 * giver rings if the sleeper's flag is set. A ring is an interrupt, which the driver of the sleeper
 * passes on. The driver mutes a sender that rings too often; an interrupt that comes meanwhile
 * stays pending. A third system may ring without a store.
 *
 * Checked: the sleeper gets each unit. Without LOSSES no sleeper looks by itself, so each ring
 * shows its effect, and a sleep without end is a deadlock here. With LOSSES rings get lost, or the
 * giver dies after the store, and the sleeper also looks now and then (the floor).
 *
 *   FORGED   number of rings without a store
 *   LOSSES   number of rings that get lost
 *   BURST    number of rings that the driver passes on before it mutes the sender
 *
 * Memory is that of x86: a store waits in a buffer of its processor, until a full fence, or for any
 * time. The two words that matter have a buffer here: the giver's word, and the sleeper's flag.
 *
 * check: ROUNDS=3
 * check: ROUNDS=3 FORGED=3
 * check: ROUNDS=3 LOSSES=2 FORGED=1
 * mutant: RING_FIRST ROUNDS=2
 * mutant: NO_FENCE_GIVER ROUNDS=1
 * mutant: NO_FENCE_SLEEPER ROUNDS=1
 * mutant: SLEEP_UNSEEN ROUNDS=1
 * mutant: RING_FORGOTTEN ROUNDS=1
 * mutant: LAST_RING_DROPPED ROUNDS=2 FORGED=2
 * mutant: PENDING_DROPPED ROUNDS=2 FORGED=2
 * mutant: NO_FLOOR ROUNDS=1 LOSSES=1
 */
#ifndef FORGED
#define FORGED 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef BURST
#define BURST 1
#endif

/* Shared: the word, the flag; and the parts of them that are still in a buffer */
byte word;
bool word_waits;
bool flag, flag_waits;

/* The interrupt, as the device and the driver have it */
bool pending, muted;
byte tokens = BURST;

bool rung;			/* the sleeper's bell, in its own memory */
byte forged, losses;

inline ring() {
	atomic {
		if
		:: losses < LOSSES -> losses++
		:: true -> pending = true
		fi
	}
}

inline ring_if_asked() {
	asked = flag;
	if
	:: asked -> ring()
	:: else
	fi
}

inline drain_word() {
	atomic {
		if
		:: word_waits -> word++; word_waits = false
		:: else
		fi
	}
}

inline drain_flag() {
	atomic {
		if
		:: flag_waits -> flag = true; flag_waits = false
		:: else
		fi
	}
}

active proctype giver() {
	byte i;
	bool asked;

	do
	:: i < ROUNDS ->
#ifdef MUTANT_RING_FIRST
		ring_if_asked();
#endif
		word_waits = true;
#ifndef MUTANT_NO_FENCE_GIVER
		drain_word();
#endif
#ifndef MUTANT_RING_FIRST
		ring_if_asked();
#endif
		!word_waits;
		i++
	:: else -> break
	od
}

active proctype sleeper() {
	byte got;

	do
	:: got == ROUNDS -> break
	:: atomic { got < ROUNDS && word > 0 -> word--; got++; flag = false; flag_waits = false }
	:: got < ROUNDS && word == 0 ->
		flag_waits = true;
#ifndef MUTANT_NO_FENCE_SLEEPER
		drain_flag();
#endif
		if
#ifndef MUTANT_SLEEP_UNSEEN
		:: word > 0
#endif
		:: else ->
#ifdef MUTANT_RING_FORGOTTEN
			rung = false;
#endif
			if
			:: atomic { rung -> rung = false }
#if LOSSES > 0 && !defined(MUTANT_NO_FLOOR)
			:: true		/* it looks, although no system has rung */
#endif
			fi
		fi
	od
}

/* The processors complete their stores at any time. */
active proctype buffers() {
end:	do
	:: atomic { word_waits -> word++; word_waits = false }
	:: atomic { flag_waits -> flag = true; flag_waits = false }
	od
}

active proctype driver() {
end:	do
	:: atomic { pending && !muted ->
		pending = false;
		if
		:: tokens > 0 -> tokens--; rung = true
		:: else ->
			muted = true;
#ifndef MUTANT_LAST_RING_DROPPED
			rung = true
#endif
		fi }
	:: atomic { muted ->
		muted = false; tokens = BURST;
#ifdef MUTANT_PENDING_DROPPED
		pending = false
#endif
		}
	:: atomic { tokens < BURST && !muted -> tokens++ }
	:: atomic { forged < FORGED -> forged++; pending = true }
	od
}
