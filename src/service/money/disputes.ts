import { createHmac } from 'node:crypto';
import { type DisputeAnswer, isDisputeClosed } from '../../domain/dispute/dispute';
import { toEnv } from '../../domain/environment';
import { Refusal, ServiceError, unavailable } from '../../domain/errors';
import type { SubmitEvidence } from '../../domain/wire/disputes';
import { type DisputeDocument, type DisputeFilter, evidenceOwner } from '../../store/disputes';
import { type MerchantDeps, type Owner, refuseFrozen } from '../access';
import { accountNow } from '../merchants/clock';
import { type Page, toPage } from '../paging';
import { createGet, createList } from './read';

type DisputeDeps = Pick<
  MerchantDeps,
  'stores' | 'temporal' | 'now' | 'keys' | 'recipientEncrypters'
>;

/** @throws Refusal 404 */
export const getDispute = createGet('dispute', ({ disputes }) => disputes);
export const listDisputes = createList(({ disputes }) => disputes);

/** Serves operators, since it checks no owner. @throws ServiceError `dispute_not_found` */
export async function findDispute(
  { stores }: Pick<DisputeDeps, 'stores'>,
  id: string,
): Promise<DisputeDocument> {
  const dispute = await stores.disputes.get(id);
  if (dispute !== null) return dispute;
  throw new ServiceError('dispute_not_found', `There is no dispute ${id}.`);
}

interface AllQuery extends Omit<DisputeFilter, 'before'> {
  /** Id of the last row of the page before. */
  before?: string | undefined;
  limit: number;
}

/**
 * Lists disputes of one account or of all, for operators.
 * @throws ServiceError `dispute_not_found` when `before` is no id of a dispute
 */
export async function listAllDisputes(
  { stores }: Pick<DisputeDeps, 'stores'>,
  { before, limit, ...filter }: AllQuery,
): Promise<Page<DisputeDocument>> {
  const row = before === undefined ? undefined : await findDispute({ stores }, before);
  const rows = await stores.disputes.listAll({ ...filter, before: row, limit: limit + 1 });
  return toPage(rows, limit, ({ _id }) => _id);
}

/** Functions of a connector that answer its bank. */
const FUNCTIONS = { evidence: 'submitEvidence', acceptance: 'acceptDispute' } as const;

/**
 * Stores evidence, encrypted for its connector, and has it sent once and in time. A repeat of the
 * same changes nothing.
 * @throws Refusal 403 `account_frozen`; 404; 422 `dispute_closed`, `evidence_not_supported`; 503
 *   `temporarily_unavailable`: outcome unknown
 */
export async function submitEvidence(
  deps: DisputeDeps,
  caller: Owner,
  id: string,
  evidence: SubmitEvidence,
): Promise<DisputeDocument> {
  const dispute = await getDispute(deps, caller, id);
  const { customer_reference = null, shipped_at = null, carrier = null } = evidence;
  const { explanation, tracking_number = null, refund_reference = null } = evidence;
  const parcel = { shipped_at, carrier, tracking_number };
  const text = JSON.stringify({ explanation, customer_reference, ...parcel, refund_reference });
  const fingerprint = createHmac('sha256', deps.keys.fingerprint)
    .update(`${evidenceOwner(id)}\n${text}`)
    .digest('hex');
  if (dispute.evidence === undefined) await storeEvidence(deps, dispute, { text, fingerprint });
  const { evidence: stored, ...current } = await getDispute(deps, caller, id);
  const { evidence_submitted_at, answers_refused = [] } = current;
  if (stored?.fingerprint !== fingerprint) {
    const isAccepted = current.answering === 'acceptance';
    throw new Refusal(
      'dispute_closed',
      isAccepted ? ACCEPTING : 'The dispute has other evidence already.',
    );
  }
  if (evidence_submitted_at !== null) return await getDispute(deps, caller, id);
  if (answers_refused.includes('evidence')) {
    throw new Refusal('dispute_closed', 'The bank has refused its evidence.');
  }
  return await respond(deps, caller, dispute, 'evidence');
}

/**
 * Gives in. A repeat changes nothing.
 * @throws Refusal as `submitEvidence`
 */
export async function acceptDispute(
  deps: DisputeDeps,
  caller: Owner,
  id: string,
): Promise<DisputeDocument> {
  const dispute = await getDispute(deps, caller, id);
  if (dispute.status === 'accepted') return dispute;
  return await respond(deps, caller, dispute, 'acceptance');
}

const ACCEPTING = 'The dispute is being accepted.';

async function storeEvidence(
  deps: DisputeDeps,
  dispute: DisputeDocument,
  { text, fingerprint }: { text: string; fingerprint: string },
): Promise<void> {
  const { _id, account_id, connector, livemode, evidence_due_at: due } = dispute;
  const now = await accountNow(deps, dispute);
  // Stored evidence is final, so none is stored that cannot be sent now.
  refuseFrozen(await deps.stores.accounts.getCached(account_id));
  refuseClosed(dispute);
  if (dispute.answering === 'acceptance') {
    throw new Refusal('dispute_closed', ACCEPTING);
  }
  if (due !== null && now.getTime() >= Date.parse(due)) {
    throw new Refusal('dispute_closed', `Evidence was taken until ${due}.`);
  }
  await requireSupport(deps, dispute, 'evidence');
  const encrypter = deps.recipientEncrypters[toEnv(livemode)];
  const ciphertext = await encrypter.encryptFor(connector, text, evidenceOwner(_id));
  const evidence = { ciphertext, fingerprint, kid: encrypter.getKid(ciphertext) };
  await deps.stores.disputes.storeEvidence(_id, evidence, now.toISOString());
}

function refuseClosed({ status }: DisputeDocument): void {
  if (isDisputeClosed(status)) throw new Refusal('dispute_closed', `The dispute is ${status}.`);
}

/** Whether the bank takes an answer over its connector. */
export async function isSupported(
  { stores }: Pick<DisputeDeps, 'stores'>,
  { connector }: Pick<DisputeDocument, 'connector'>,
  answer: DisputeAnswer,
): Promise<boolean> {
  const { functions = [] } = (await stores.capabilities.get(connector)) ?? {};
  return functions.includes(FUNCTIONS[answer]);
}

async function requireSupport(
  deps: Pick<DisputeDeps, 'stores'>,
  dispute: DisputeDocument,
  answer: DisputeAnswer,
): Promise<void> {
  if (await isSupported(deps, dispute, answer)) return;
  const message = 'The bank takes no answers to disputes over this service.';
  throw new Refusal('evidence_not_supported', message);
}

/** Has the bank answered. @returns the dispute, also where the bank has not confirmed it yet */
async function respond(
  deps: DisputeDeps,
  caller: Owner,
  dispute: DisputeDocument,
  answer: DisputeAnswer,
): Promise<DisputeDocument> {
  refuseFrozen(await deps.stores.accounts.getCached(caller.account_id));
  refuseClosed(dispute);
  await requireSupport(deps, dispute, answer);
  await deps.temporal.respond(dispute, answer);
  const current = await getDispute(deps, caller, dispute._id);
  const isDone =
    answer === 'evidence' ? current.evidence_submitted_at !== null : current.status === 'accepted';
  if (isDone || current.answering === answer) return current;
  const cause = new Error(`The workflow of ${dispute._id} has not begun to answer the bank.`);
  throw unavailable('The bank may not have the answer.', cause);
}
