import { z } from 'zod';
import { createConnectorKey, listConnectorKeys, revokeConnectorKey } from '../../callbacks/keys';
import { ServiceError } from '../../domain/errors';
import { assertConnectorName, isRouted } from '../../service/connectors';
import { defineCommand, defineGroup } from '../command';
import { formatTime, printFields, printList } from '../output';
import { connectorCheck } from './connector-check';
import { connectorHealth } from './connector-health';
import { connectorNew } from './connector-new';
import { connectorPause, connectorResume } from './connector-pause';
import { connectorRelease } from './connector-release';

const ConnectorName = z.string().describe('the connector').meta({ argument: true });

const create = defineCommand({
  name: 'create',
  description: 'create a key, and show its secret once',
  options: z.object({ name: ConnectorName }),
  notes: 'To replace a key, create another, let the bank sign with it, then revoke the old one.',
  example: 'connector key create sandbox',
  run: async (context, { name }) => {
    assertConnectorName(name);
    const isKnown = isRouted(context.settings(), name);
    const deps = await context.actingDeps();
    const key = await createConnectorKey({ ...deps, encrypter: context.encrypter() }, name);
    const hint = isKnown ? '' : `\nNothing is routed to ${name} yet: see LIVE_CONNECTORS.`;
    const note = `The secret is not shown again: save it now.${hint}`;
    printFields(context, { json: key, note }, [
      ['Key id', key.key_id],
      ['Secret', key.secret],
    ]);
  },
});

const list = defineCommand({
  name: 'list',
  description: 'list the keys of a connector, oldest first, without their secrets',
  options: z.object({ name: ConnectorName }),
  example: 'connector key list sandbox',
  run: async (context, { name }) => {
    assertConnectorName(name);
    const rows = await listConnectorKeys(await context.readDeps(), name);
    printList(context, {
      rows,
      present: ({ _id, connector, created_at, revoked_at }) => ({
        key_id: _id,
        connector,
        created_at,
        revoked_at,
      }),
      columns: ['KEY', 'CREATED', 'REVOKED'],
      cells: ({ key_id, created_at, revoked_at }) => [
        key_id,
        formatTime(created_at),
        formatTime(revoked_at),
      ],
      none: 'This connector has no keys.',
    });
  },
});

const revoke = defineCommand({
  name: 'revoke',
  description: 'revoke a key at once; again changes nothing',
  options: z.object({ key_id: z.string().meta({ argument: true }) }),
  example: 'connector key revoke cnkey_…',
  run: async (context, { key_id }) => {
    const key = await revokeConnectorKey(await context.actingDeps(), key_id);
    if (key === null) throw new ServiceError('key_not_found', `There is no key ${key_id}.`);
    const { revoked_at } = key;
    const text = `The key ${key_id} is revoked since ${formatTime(revoked_at)}.`;
    context.print({ json: { key_id, revoked_at }, text });
  },
});

const keys = defineGroup({
  name: 'key',
  description: 'keys that a connector signs its callbacks with: several each, each shown once',
  commands: [create, list, revoke],
});

export const connectorCommands = defineGroup({
  name: 'connector',
  description:
    'banks and chains: begin one, check its contract, see its health, pause or release it, its keys',
  notes: `
A connector signs its callbacks with a key of its own, which may exist before LIVE_CONNECTORS names the
connector. On live a callback that is not signed changes nothing.`,
  commands: [
    ...[connectorNew, connectorCheck, connectorHealth, connectorPause, connectorResume],
    ...[connectorRelease, keys],
  ],
});
