import { checkConnector } from '../../../connectors/conformance/check';
import { createOperatorDeps, createReadDeps } from '../../../src/service/operators/deps';
import { freePort } from '../../../stack/ports';
import { useFixture } from '../../support/fixture';
import { describeWith } from '../../support/python-tools';
import { temporalAddress } from '../../support/servers';
import { useService } from '../../support/service';
import { listBroken, PATIENT_WAIT_MS } from '../conformance/setting';
import { createConnectorProcess, makePrefix, NAME, ROUTES, startPythonBank } from './world';

describeWith('python3', 'a check of the example', () => {
  const prefix = makePrefix();
  // The API alone, which takes the callbacks.
  const service = useService({ live: { connectors: '', prefix }, tests: ROUTES, worker: false });
  const bank = useFixture(
    () => startPythonBank(service),
    (opened) => opened.stop(),
  );
  const port = useFixture(async () => ({ bank: await freePort() }));
  useFixture(
    async () => {
      const url = `http://127.0.0.1:${port.bank}`;
      const opened = createConnectorProcess(service, { prefix, url, secretFile: bank.secretFile });
      await opened.start();
      return opened;
    },
    (opened) => opened.stop(),
  );

  test('finds that a bank team’s server keeps every promise', async () => {
    const { mongo, database, keysDir, temporal } = service;
    const deps = await createOperatorDeps(createReadDeps(mongo, database));
    const access = { address: temporalAddress(), namespace: 'default' };
    const report = await checkConnector(
      {
        ...{ ...deps, temporal, access, database, keysDir, taskQueuePrefix: prefix },
        progress: () => undefined,
      },
      {
        ...{
          connector: NAME,
          methods: ['ideal'],
          rails: ['sepa_credit_transfer'],
          waitMs: PATIENT_WAIT_MS,
        },
        ...{ deskUrl: bank.deskUrl, bankUrl: bank.recorder, bankPort: port.bank },
      },
    );
    expect(listBroken(report)).toEqual([]);
    const missing = report.promises.filter(({ result }) => result === 'not_applicable');
    expect(missing.map(({ id, seen }) => [id, seen])).toEqual([
      ...['lost', 'verified', 'acknowledged'].map((name) => [
        `webhooks.${name}`,
        'It needs the proxy in front of the connector’s own port.',
      ]),
      ['poll.repeated', 'No list of the bank was read: none of its answers to a GET had the fact.'],
    ]);
    expect(report.passed).toBe(report.promises.length - missing.length);
  });
});
