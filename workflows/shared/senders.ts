import type { AnyCallback, CallbackName, CallbackResource } from '../../src/domain/callback';
import { type CallbackMac, SENDER_FAULTS, type SenderFault } from '../../src/domain/callback-mac';
import { type CommonFacts, type Life, note } from './life';
import { writeLocally } from './persist';

/** A bank's signal that could be read. */
interface Heard {
  name: CallbackName;
  callback: AnyCallback;
  mac: CallbackMac | undefined;
}

interface HeedDeps<Attention, Resource> {
  noun: CallbackResource;
  senderMark: Attention;
  show: (resource: Resource) => void;
  setAttention: (resource: Resource, attention: Attention) => Promise<void>;
}

/**
 * Makes the way by which each callback acts: the first of its id whose sender is known, where that is
 * asked for. Any other is kept and told to operators.
 * @see docs/connectors.md#prove-who-sends
 */
export function createHeed<
  Attention extends string,
  Resource extends Life<string, Attention, CommonFacts>,
>({ noun, senderMark, show, setAttention }: HeedDeps<Attention, Resource>) {
  return async (resource: Resource, heard: Heard, act: () => Promise<void>): Promise<void> => {
    const { counted } = resource;
    const { callback_id } = heard.callback;
    const first = counted.get(callback_id);
    if (first === undefined) {
      const fault = await senderFault(noun, resource, heard);
      if (fault !== undefined) {
        await keepRefused(noun, resource, heard, fault);
        // Whoever sends false callbacks must not hide what a person looks at already.
        return resource.attention === null
          ? await setAttention(resource, senderMark)
          : show(resource);
      }
      counted.set(callback_id, heard);
      // It acts again where the record was found ahead.
    } else if (first !== heard) return;
    await act();
  };
}

type AnyLife = Life<string, string, CommonFacts>;

/** Reason why a sender is not known; without a mac, nothing is asked of the record. */
async function senderFault(
  noun: CallbackResource,
  resource: AnyLife,
  heard: Heard,
): Promise<SenderFault | undefined> {
  const { senders } = resource;
  const { mac } = heard;
  if (senders === undefined) return undefined;
  if (mac === undefined) return senders === 'required' ? 'unsigned' : undefined;
  const told = toldOf(noun, resource, heard);
  const { fault } = await writeLocally((activities) => activities.checkSender({ told, mac }));
  return fault ?? undefined;
}

async function keepRefused(
  noun: CallbackResource,
  resource: AnyLife,
  heard: Heard,
  code: SenderFault,
): Promise<void> {
  const { name, callback, mac } = heard;
  const { request_id } = resource.facts;
  const told = toldOf(noun, resource, heard);
  const proof = mac === undefined ? {} : { mac };
  const at = new Date().toISOString();
  await writeLocally((activities) =>
    activities.recordRefused({ told, ...proof, code, at, request_id }),
  );
  const why = SENDER_FAULTS[code];
  note(resource, `callback \`${name}\` (${callback.callback_id}) is not heeded: ${why}`);
}

function toldOf(resource: CallbackResource, { id, facts }: AnyLife, { name, callback }: Heard) {
  return { connector: facts.connector, resource, resource_id: id, name, callback };
}
