import { Connection } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes';
import { connectMongo, inTransaction } from '../../src/mongo';
import { mongodbUri, temporalAddress, temporalUi } from '../support/servers';

test('the shared MongoDB is a replica set that takes transactions', async () => {
  const mongo = await connectMongo(mongodbUri(), 'servers-test');
  const database = mongo.db(`servers_test_${process.pid}`);
  try {
    const rows = database.collection<{ _id: number }>('rows');
    await rows.insertOne({ _id: 1 });
    await inTransaction(mongo, async (session) => {
      await rows.insertOne({ _id: 2 }, { session });
    });
    expect(await rows.countDocuments()).toBe(2);
  } finally {
    await database.dropDatabase();
    await mongo.close();
  }
});

describe('the shared Temporal server', () => {
  let connection: Connection;
  beforeAll(async () => {
    connection = await Connection.connect({ address: temporalAddress() });
  });
  afterAll(async () => {
    await connection.close();
  });

  test('has every search attribute of the service', async () => {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({
      namespace: 'default',
    });
    expect(Object.keys(customAttributes ?? {})).toEqual(
      expect.arrayContaining(Object.keys(SEARCH_ATTRIBUTES)),
    );
  });

  test('keeps closed workflows for 30 days', async () => {
    const { config } = await connection.workflowService.describeNamespace({ namespace: 'default' });
    expect(Number(config?.workflowExecutionRetentionTtl?.seconds)).toBe(30 * 24 * 3600);
  });

  test('serves its web UI', async () => {
    expect((await fetch(temporalUi())).status).toBe(200);
  });
});
