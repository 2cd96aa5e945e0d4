import type {
  AnyCallback,
  CallbackName,
  CallbackResource,
} from '../../src/domain/callback/callback';
import {
  type CallbackSignature,
  VERIFICATION_FAULTS,
  type VerificationFault,
} from '../../src/domain/callback/signature';
import { writeLocally } from './persist';
import { type CommonFacts, note, type WorkflowState } from './state';

interface ReceivedCallback {
  name: CallbackName;
  callback: AnyCallback;
  signature: CallbackSignature | undefined;
}

interface ApplyVerifiedDeps<Attention, Resource> {
  noun: CallbackResource;
  unverifiedReason: Attention;
  show: (resource: Resource) => void;
  setAttention: (resource: Resource, attention: Attention) => Promise<void>;
}

/**
 * Applies each verified callback once; any other is stored and shown.
 * @see docs/connectors.md#prove-who-sends
 */
export function createApplyVerified<
  Attention extends string,
  Resource extends WorkflowState<string, Attention, CommonFacts>,
>({ noun, unverifiedReason, show, setAttention }: ApplyVerifiedDeps<Attention, Resource>) {
  return async (
    resource: Resource,
    item: ReceivedCallback,
    act: () => Promise<void>,
  ): Promise<void> => {
    const { verifiedCallbacks } = resource;
    const { callback_id } = item.callback;
    const first = verifiedCallbacks.get(callback_id);
    if (first === undefined) {
      const fault = await getSenderFault(noun, resource, item);
      if (fault !== undefined) {
        await storeUnverified(noun, resource, item, fault);
        // A false callback must not hide another attention reason.
        return resource.attention === null
          ? await setAttention(resource, unverifiedReason)
          : show(resource);
      }
      verifiedCallbacks.set(callback_id, item);
      // The same item is applied again after a stale state.
    } else if (first !== item) return;
    if (resource.appliedIds.has(callback_id)) {
      note(resource, `callback \`${item.name}\` (${callback_id}): applied before`);
      return show(resource);
    }
    await act();
  };
}

type AnyWorkflowState = WorkflowState<string, string, CommonFacts>;

async function getSenderFault(
  noun: CallbackResource,
  resource: AnyWorkflowState,
  item: ReceivedCallback,
): Promise<VerificationFault | undefined> {
  const { verification } = resource;
  const { signature } = item;
  if (signature === undefined) return verification === 'required' ? 'unsigned' : undefined;
  const report = buildReport(noun, resource, item);
  const { fault } = await writeLocally((activities) =>
    activities.checkSender({ report, signature }),
  );
  return fault ?? undefined;
}

async function storeUnverified(
  noun: CallbackResource,
  resource: AnyWorkflowState,
  item: ReceivedCallback,
  code: VerificationFault,
): Promise<void> {
  const { name, callback, signature } = item;
  const { request_id } = resource.facts;
  const report = buildReport(noun, resource, item);
  const proof = signature === undefined ? {} : { signature };
  const at = new Date().toISOString();
  await writeLocally((activities) =>
    activities.recordRefused({ report, ...proof, code, at, request_id }),
  );
  const why = VERIFICATION_FAULTS[code];
  note(resource, `callback \`${name}\` (${callback.callback_id}) is ignored: ${why}`);
}

function buildReport(
  resource: CallbackResource,
  { id, facts }: AnyWorkflowState,
  { name, callback }: ReceivedCallback,
) {
  return { connector: facts.connector, resource, resource_id: id, name, callback };
}
