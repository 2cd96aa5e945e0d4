import type {
  RecordAttention,
  ResourceState,
  StaleResult,
  TransitionInput,
  TransitionResult,
  Written,
} from '../../activities/shared/record-table';
import {
  type AnyCallback,
  type CallbackName,
  type CallbackResource,
  type CallbackSignature,
  type SignedCallback,
  VERIFICATION_FAULTS,
  type VerificationFault,
} from '../../src/domain/banks/callback';
import { applyTaken, mergeMovements, type Taken } from '../../src/domain/banks/movement';
import { omitUndefined } from '../../src/domain/defined';
import type { StoredVerification } from '../../src/domain/payout/payout';
import { now, timestamp } from './clock';
import { findReason, keepsReason } from './movement';
import { type AuditedAct, datedAudit } from './operator-acts';
import {
  type Booked,
  type Booking,
  type BookingInput,
  type Bookings,
  type Write,
  writeLocally,
  writeScheduled,
} from './persist';
import { type CommonFacts, note, updateDetails, type Waiting, type WorkflowState } from './state';

export interface RecordKind {
  status: string;
  attention: string;
  facts: CommonFacts;
  change: object;
}

type Recorded<K extends RecordKind> = WorkflowState<K['status'], K['attention'], K['facts']>;

interface Next<K extends RecordKind> {
  to: readonly K['status'][];
  at: string;
  change: Partial<K['change']>;
  isAct: boolean;
  /** The bank's, of the movement that a callback reports. */
  reference?: string | undefined;
  /** Movement that an act takes. */
  movement?: string | undefined;
}

export interface RecordRules<K extends RecordKind, R extends Recorded<K>> {
  noun: CallbackResource;
  /** Names under which banks report about it; absent: its own. */
  getReported?: (resource: R) => { resource: CallbackResource; resource_id: string };
  waitingFor: Record<K['status'], Waiting>;
  /** Waiting time as the end of a clause; empty when nothing is due. */
  until: (resource: R) => string;
  /** Whether `status` ends a reason; by default it ends overdue and different amounts. */
  isPast?: (attention: K['attention'], status: K['status']) => boolean;
  /** Parts of movements that leave suspense with a transition. */
  take?: (resource: R, next: Next<K>) => Taken[];
  /** Whether a reason replaces the present one, while a movement in suspense has it. */
  outranks?: (reason: K['attention'], current: K['attention']) => boolean;
  /** Replaced by an overdue reason: any other says more. */
  weakReasons?: readonly K['attention'][];
  overdueReasons: readonly K['attention'][];
  /** Stay through a snooze: later acts depend on them. */
  lastingReasons?: readonly K['attention'][];
  getExtraFields?: (resource: R) => Partial<K['change']>;
  remember?: (resource: R, next: Next<K>) => void;
  writeTransition: (
    input: TransitionInput<K['status'], K['attention'], K['change']>,
  ) => Write<TransitionResult<K['status'], K['attention']>>;
  writeAttention: (
    input: RecordAttention<K['attention']>,
  ) => Write<Written<object, K['status'], K['attention']>>;
}

interface StoredState<K extends RecordKind> extends ResourceState<K['status']> {
  attention: K['attention'] | null;
}

interface TransitionOptions<K extends RecordKind> {
  change?: Partial<K['change']>;
  audit?: AuditedAct;
  callback_id?: string;
  /** Makes a repeat known without an event, callback or act. */
  id?: string;
  value_date?: string | undefined;
  /** The bank's, of the movement that a callback reports. */
  reference?: string | undefined;
  /** Minor units that the acquirer keeps of what a callback reports. */
  fee?: number | undefined;
  /** Movement that an act takes. */
  movement?: string | undefined;
  scheduled?: boolean;
}

/** The database has a later version, as after a restore or a reset of the workflow. */
export class StaleState extends Error {
  override readonly name = 'StaleState';
}

/** Cleared by the next transition. */
const UNVERIFIED = 'sender_not_known';

type Stale<K extends RecordKind> = StaleResult<K['status'], K['attention']>;
type ActFacts = Pick<RecordAttention<string>, 'snoozed_until' | 'verification'>;

interface ReceivedCallback {
  name: CallbackName;
  callback: AnyCallback;
  signature: CallbackSignature | undefined;
}

const HOUR_MS = 3_600_000;

/** Writes of one kind of resource. No other code changes a status, or an attention reason. */
export class ResourceRecord<K extends RecordKind, R extends Recorded<K>> {
  readonly #rules: RecordRules<K, R>;

  constructor(rules: RecordRules<K, R>) {
    this.#rules = rules;
  }

  show(resource: R): void {
    const { noun, waitingFor, until } = this.#rules;
    updateDetails(resource, { noun, waitingFor, until: until(resource) });
  }

  logActivity(resource: R, line: string): void {
    note(resource, line);
    this.show(resource);
  }

  /**
   * Changes the status; no other function does.
   * @throws StaleState after a sync from the database
   */
  async transition(
    resource: R,
    to: readonly K['status'][],
    { change: ownChange, audit, scheduled = false, ...options }: TransitionOptions<K> = {},
  ): Promise<void> {
    const last = to.at(-1);
    if (last === undefined) return;
    const rules = this.#rules;
    const { callback_id, id, value_date, reference, fee, movement } = options;
    const { account_id, livemode } = resource.facts;
    const at = timestamp(resource);
    const change = { ...rules.getExtraFields?.(resource), ...ownChange };
    const next = { to, at, change, isAct: audit !== undefined, reference, movement };
    const taken = rules.take?.(resource, next) ?? [];
    const known = applyTaken(resource.movements, taken);
    const isReleased = to.includes('failed');
    const left = known.filter((each) => !isReleased || each.direction === 'in');
    const reason = resource.attention;
    // An operator decides about a different amount.
    const staysOpen =
      (reason === 'amount_differs' && audit === undefined) || keepsReason(resource, left);
    const isOver = reason !== null && this.#isPast(reason, last) && !staysOpen;
    const attention: K['attention'] | null = isOver ? findReason(left) : reason;
    const { status, version, transition } = resource;
    const write = scheduled ? writeScheduled : writeLocally;
    const result = await write(
      rules.writeTransition({
        ...getResourceRef(resource),
        account_id,
        livemode,
        from: { status, version, transition },
        to: [...to],
        at,
        attention,
        change,
        ...omitUndefined({ audit, callback_id, id, value_date, reference, fee }),
        ...(taken.length === 0 ? {} : { taken }),
      }),
    );
    if (result.stale !== undefined) this.#throwStale(resource, { ...result, stale: result.stale });
    enterState(resource, { ...result, attention });
    resource.movements = mergeMovements(applyTaken(resource.movements, taken), result.moved);
    if ('bank_reference' in change) resource.storedReference = String(change.bank_reference);
    rules.remember?.(resource, next);
    this.show(resource);
  }

  #isPast(reason: K['attention'], status: K['status']): boolean {
    const { isPast, overdueReasons } = this.#rules;
    if (reason === UNVERIFIED || reason === 'record_behind') return true;
    if (isPast !== undefined) return isPast(reason, status);
    return reason === 'amount_differs' || overdueReasons.includes(reason);
  }

  /**
   * Books what changes no status, which counts in the version.
   * @throws StaleState after a sync from the database
   */
  async book<Name extends Booking>(
    resource: R,
    name: Name,
    input: BookingInput<Name>,
  ): Promise<Booked<Name>> {
    const { version, transition } = resource;
    const answer = await writeScheduled((activities: Bookings) =>
      activities[name]({ ...input, version, transition }),
    );
    // The activity is that of this kind of resource.
    if (answer.stale !== undefined) return this.#throwStale(resource, answer as Stale<K>);
    resource.version = answer.version;
    this.show(resource);
    return answer;
  }

  /** Applies what a booking says of the state, which it may have changed in its transaction. */
  applyBooked(
    resource: R,
    { status, transition, reached = 0, attention = resource.attention }: StateChange<K>,
  ): void {
    const version = Math.max(resource.version, reached);
    if (status !== undefined && transition !== undefined && transition !== resource.transition) {
      enterState(resource, { status, transition, version, attention });
    }
    this.show(resource);
  }

  applyStored(resource: R, state: StoredState<K>): void {
    enterState(resource, state);
    const { noun } = this.#rules;
    this.logActivity(resource, `synced from the database: the ${noun} is ${state.status}`);
  }

  /** @throws StaleState, after a sync from the database */
  #throwStale(resource: R, stored: Stale<K>): never {
    resource.movements = stored.moved ?? resource.movements;
    this.applyStored(resource, { ...stored, attention: stored.stale.attention });
    throw new StaleState(`The ${this.#rules.noun} is ${stored.status} in the database.`);
  }

  async recordUnapplied(
    resource: R,
    name: CallbackName,
    callback: AnyCallback,
    reason: string,
  ): Promise<void> {
    const { connector, request_id } = resource.facts;
    const report = { connector, request_id, name, callback, reason };
    const about = { ...this.#getReported(resource), ...report };
    await writeLocally((activities) => activities.recordUnapplied(about));
  }

  #getReported(resource: R) {
    const { noun, getReported } = this.#rules;
    return getReported?.(resource) ?? { resource: noun, resource_id: resource.id };
  }

  /** @param isStale the database may have another reason than the known one */
  async setAttention(
    resource: R,
    attention: K['attention'] | null,
    isStale = false,
  ): Promise<void> {
    const { outranks, writeAttention } = this.#rules;
    const current = resource.attention;
    const isSame = !isStale && current === attention;
    const isOutranked =
      current !== null && attention !== null && outranks?.(attention, current) === true;
    const isKept = keepsReason(resource, resource.movements) && !isOutranked;
    if (isSame || isKept) return this.show(resource);
    const answer = await writeLocally(writeAttention(buildAttention(resource, attention)));
    if (answer.stale === undefined) {
      resource.version = answer.version;
      this.enterReason(resource, attention);
    } else if (answer.transition === resource.transition) {
      // A lost task wrote more than this run knows.
      resource.version = answer.version;
      resource.movements = answer.moved ?? resource.movements;
      this.enterReason(resource, answer.stale.attention);
      return await this.setAttention(resource, attention);
    }
    // After a transition of a lost task, the next write decides again.
    this.show(resource);
  }

  /** Stores what the bank calls the resource, since no transition may come for long. */
  async noteReference(resource: R, bank_reference: string): Promise<void> {
    if (resource.storedReference !== undefined) return;
    const noted = { ...buildAttention(resource, resource.attention), bank_reference };
    const answer = await writeLocally(this.#rules.writeAttention(noted));
    if (answer.stale === undefined) {
      resource.version = answer.version;
      resource.storedReference = bank_reference;
    }
    this.show(resource);
  }

  /**
   * Stores a result of a name check with the reason that it leaves.
   * @throws StaleState after a sync from the database
   */
  async noteVerification(
    resource: R,
    verification: StoredVerification,
    attention: K['attention'] | null,
  ): Promise<void> {
    const noted = { ...buildAttention(resource, attention), verification };
    const answer = await writeLocally(this.#rules.writeAttention(noted));
    if (answer.stale !== undefined) return this.#throwStale(resource, answer);
    resource.version = answer.version;
    this.enterReason(resource, attention);
    this.show(resource);
  }

  /** Flags an unreadable callback, unless a reason says more. */
  async flagMalformed(resource: R): Promise<void> {
    await this.flagUnlessMore(resource, 'malformed_callback');
  }

  /** @param refused why the books refused its entry; absent: the state kept changing */
  async flagGivenUp(resource: R, message: string, refused?: string): Promise<void> {
    const why = refused ?? 'the state in the database changed each time';
    note(resource, `not applied, since ${why}: ${message}`);
    const reason = refused === undefined ? 'message_given_up' : 'books_refused';
    await this.flagUnlessMore(resource, reason);
  }

  async flagUnlessMore(resource: R, reason: K['attention']): Promise<void> {
    const { weakReasons = [], overdueReasons } = this.#rules;
    const less = [null, UNVERIFIED, reason, ...weakReasons, ...overdueReasons];
    if (less.includes(resource.attention)) await this.setAttention(resource, reason);
    else this.show(resource);
  }

  async flagOverdue(resource: R, reason: K['attention']): Promise<void> {
    const { noun, overdueReasons } = this.#rules;
    note(resource, `the ${noun} is overdue: still ${resource.status}`);
    resource.snoozedUntil = undefined;
    resource.isOverdueReported = true;
    // An operator has acknowledged it in an earlier status, or before a snooze.
    for (const earlier of overdueReasons) resource.acknowledged.delete(earlier);
    if (this.#saysLess(resource.attention)) await this.setAttention(resource, reason);
    else this.show(resource);
  }

  #saysLess(reason: K['attention'] | null): boolean {
    const { weakReasons = [] } = this.#rules;
    return [null, UNVERIFIED, ...weakReasons].includes(reason);
  }

  /**
   * Enters a stored reason outside a transition. One that says less than an overdue reason no longer
   * hides it: unless an operator has acknowledged it, it is reported again.
   */
  enterReason(resource: R, attention: K['attention'] | null): void {
    const { acknowledged } = resource;
    resource.attention = attention;
    if (attention !== null) acknowledged.delete(attention);
    const isAcknowledged = this.#rules.overdueReasons.some((each) => acknowledged.has(each));
    if (this.#saysLess(attention) && !isAcknowledged) resource.isOverdueReported = false;
  }

  /** @throws StaleState after a sync from the database */
  async recordAct(
    resource: R,
    act: AuditedAct,
    attention: K['attention'] | null,
    more: ActFacts = {},
  ): Promise<void> {
    const audit = datedAudit(act);
    const input = { ...buildAttention(resource, attention), audit, ...more };
    const answer = await writeScheduled(this.#rules.writeAttention(input));
    if (answer.stale !== undefined) return this.#throwStale(resource, answer);
    resource.version = answer.version;
    if (act.what === 'acknowledge' && resource.attention !== null) {
      resource.acknowledged.add(resource.attention);
      // What was stale, and read again, is not known as reported.
      if (this.#rules.overdueReasons.includes(resource.attention))
        resource.isOverdueReported = true;
    }
    this.enterReason(resource, attention);
  }

  /**
   * Clears the attention reason until it comes again.
   * @param expected reason that the operator saw
   * @returns why it can't be acknowledged
   * @throws StaleState after a sync from the database
   */
  async acknowledge(
    resource: R,
    act: AuditedAct,
    expected: string | undefined,
  ): Promise<string | undefined> {
    const reason = resource.attention;
    if (reason === null || (expected ?? reason) !== reason) {
      return `The attention reason is ${reason ?? 'none'}.`;
    }
    await this.recordAct(resource, act, null);
    this.show(resource);
    return undefined;
  }

  async snooze(resource: R, act: AuditedAct, hours: number): Promise<void> {
    const snoozed_until = now(resource) + hours * HOUR_MS;
    const { attention, movements } = resource;
    const { lastingReasons = [] } = this.#rules;
    const isLasting = attention !== null && lastingReasons.includes(attention);
    const isKept = isLasting || keepsReason(resource, movements);
    await this.recordAct(resource, act, isKept ? attention : null, { snoozed_until });
    resource.snoozedUntil = snoozed_until;
    resource.isOverdueReported = false;
    this.show(resource);
  }

  /**
   * Applies each verified callback once; any other is stored and shown.
   * @see docs/connectors.md#prove-who-sends
   */
  async applyVerified(
    resource: R,
    item: ReceivedCallback,
    apply: () => Promise<void>,
  ): Promise<void> {
    const { verifiedCallbacks } = resource;
    const { name, callback, signature } = item;
    const { callback_id } = callback;
    const first = verifiedCallbacks.get(callback_id);
    if (first === undefined) {
      const { connector, request_id } = resource.facts;
      const report = { connector, ...this.#getReported(resource), name, callback };
      const fault = await findSenderFault(resource, report, signature);
      if (fault !== undefined) {
        const refused = { report, ...omitUndefined({ signature }), code: fault, request_id };
        const at = new Date().toISOString();
        await writeLocally((activities) => activities.recordRefused({ ...refused, at }));
        const why = VERIFICATION_FAULTS[fault];
        note(resource, `callback ${name} (${callback_id}) is ignored: ${why}`);
        // A false callback must not hide another attention reason.
        return resource.attention === null
          ? await this.setAttention(resource, UNVERIFIED)
          : this.show(resource);
      }
      verifiedCallbacks.set(callback_id, item);
      // The same item is applied again after a stale state.
    } else if (first !== item) return;
    if (resource.appliedIds.has(callback_id)) {
      return this.logActivity(resource, `callback ${name} (${callback_id}): applied before`);
    }
    await apply();
  }
}

/** State after a booking; absent where it changed none. */
interface StateChange<K extends RecordKind> {
  outcome: string;
  status?: K['status'];
  transition?: number;
  /** Version that a lost task has reached. */
  reached?: number;
  /** Absent: as before. */
  attention?: K['attention'] | null;
}

function enterState<K extends RecordKind>(resource: Recorded<K>, state: StoredState<K>): void {
  resource.status = state.status;
  resource.version = state.version;
  resource.transition = state.transition;
  resource.attention = state.attention;
  resource.enteredAt = now(resource);
  resource.snoozedUntil = undefined;
  resource.isOverdueReported = false;
}

/** Makes its time later than the previous one, also within one task. */
function buildAttention<K extends RecordKind>(
  resource: Recorded<K>,
  attention: K['attention'] | null,
): RecordAttention<K['attention']> {
  resource.attentionAt = Math.max(Date.now(), resource.attentionAt + 1);
  const { version, transition, attentionAt: attention_at } = resource;
  const known = { version, transition, attention, audit: null, attention_at };
  return { ...getResourceRef(resource), ...known };
}

function getResourceRef({ id, facts }: Recorded<RecordKind>) {
  return { resource_id: id, request_id: facts.request_id };
}

export async function findSenderFault(
  { verification }: Pick<Recorded<RecordKind>, 'verification'>,
  report: SignedCallback,
  signature: CallbackSignature | undefined,
): Promise<VerificationFault | undefined> {
  if (signature === undefined) return verification === 'required' ? 'unsigned' : undefined;
  const { fault } = await writeLocally((activities) =>
    activities.checkSender({ report, signature }),
  );
  return fault ?? undefined;
}
