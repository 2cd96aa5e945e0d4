import { readApprovalLimits } from '../../src/domain/approval';
import {
  type ActDecision,
  authorizeAct,
  type ResourceActRequest,
} from '../../src/service/operators/approvals/request';
import { auditBy } from '../../src/store/audit';
import type { RecordDeps } from './record-table';

/** Checks an operator's act before it moves money of a live resource; writes no resource. */
export function createAuthorizeAct(deps: RecordDeps) {
  const { mongo, stores, approvalLimits = readApprovalLimits() } = deps;
  const now = () => new Date();
  return {
    authorizeAct: (request: ResourceActRequest): Promise<ActDecision> => {
      const audit = auditBy({ stores, now }, { via: 'workflow', operator: request.operator });
      return authorizeAct({ mongo, stores, now }, approvalLimits, audit, request);
    },
  };
}
