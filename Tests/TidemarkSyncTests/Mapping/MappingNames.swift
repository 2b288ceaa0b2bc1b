/// Whatever needs a row in the article *Coming from Cognito Sync and DataStore*.
enum MappingNames {
    /// Every name, by the heading of its table.
    static let byHeading: [String: [String]] = [
        "AWSCognitoDataset": [
            "name", "lastSyncCount", "creationDate", "dataStorage", "lastModifiedBy",
            "lastModifiedDate", "numRecords", "isDeleted", "conflictHandler",
            "datasetDeletedHandler", "datasetMergedHandler", "synchronizeRetries",
            "synchronizeOnWiFiOnly", "setString:forKey:", "stringForKey:", "synchronize",
            "synchronizeOnConnectivity", "subscribe", "unsubscribe", "getAllRecords", "getAll",
            "removeObjectForKey:", "recordForKey:", "clear", "size", "sizeForKey:", "syncPull:",
            "syncPush:",
        ],
        "AWSCognito": [
            "defaultCognito", "openOrCreateDataset:", "listDatasets", "refreshDatasetMetadata",
            "wipe", "conflictHandler", "datasetDeletedHandler", "datasetMergedHandler",
            "defaultConflictHandler", "synchronizeRetries", "synchronizeOnWiFiOnly", "deviceId",
            "registerDevice:", "cognitoDeviceId", "setPushPlatform:", "pushPlatform", "subscribe:",
            "subscribeAll", "unsubscribe:", "unsubscribeAll",
        ],
        "AWSCognitoRecord": [
            "recordId", "data", "lastModified", "lastModifiedBy", "dirty", "dirtyCount",
            "syncCount", "isDeleted", "AWSCognitoRecord",
        ],
        "AWSCognitoConflict": [
            "localRecord", "remoteRecord", "resolveWithLocalRecord", "resolveWithRemoteRecord",
            "resolveWithValue:", "AWSCognitoConflict", "AWSCognitoResolvedConflict",
        ],
        "Callbacks of iOS, in Objective-C and Swift": [
            "AWSCognitoRecordConflictHandler", "AWSCognitoDatasetDeletedHandler",
            "AWSCognitoDatasetMergedHandler", "AWSCognitoDidStartSynchronizeNotification",
            "AWSCognitoDidEndSynchronizeNotification",
            "AWSCognitoDidFailToSynchronizeNotification",
            "AWSCognitoDidChangeLocalValueFromRemoteNotification",
            "AWSCognitoDidChangeRemoteValueNotification", "AWSCognitoErrorUnknown",
            "AWSCognitoErrorRemoteDataStorageFailed", "AWSCognitoErrorInvalidDataValue",
            "AWSCognitoErrorUserDataSizeLimitExceeded", "AWSCognitoErrorLocalDataStorageFailed",
            "AWSCognitoErrorIllegalArgument", "AWSCognitoAuthenticationFailed",
            "AWSCognitoErrorTaskCanceled", "AWSCognitoErrorConflictRetriesExhausted",
            "AWSCognitoErrorWiFiNotAvailable", "AWSCognitoErrorDeviceNotRegistered",
            "DatasetMergeHandler", "userInfo.dataset", "userInfo.keys", "userInfo.error",
        ],
        "Callbacks of Android": [
            "onSuccess", "onFailure", "onConflict", "onDatasetDeleted", "onDatasetsMerged",
            "DefaultSyncCallback", "SyncCallback", "DataStorageException", "SyncConflict",
        ],
        "Callbacks of JavaScript": [
            "onSuccess", "onFailure", "onConflict", "onDatasetDeleted", "onDatasetsMerged",
            "onDatasetMerged", "callback(true)", "callback(false)",
        ],
        "Callbacks of Unity": [
            "OnSyncSuccess", "OnSyncFailure", "OnSyncConflict", "OnDatasetDeleted",
            "OnDatasetMerged", "SyncSuccessEvent", "SyncFailureEvent",
        ],
        "Callbacks of Xamarin": [
            "OnSyncSuccess", "OnSyncFailure", "OnSyncConflict", "OnDatasetDeleted",
            "OnDatasetMerged", "SyncSuccessEventArgs", "SyncFailureEventArgs",
        ],
        "Datasets and conflicts of Android, JavaScript, Unity and Xamarin": [
            "getKey", "getLocalRecord", "getRemoteRecord", "resolveWithLocalRecord",
            "resolveWithRemoteRecord", "resolveWithValue", "dataset.resolve",
            "CognitoSyncManager.openOrCreateDataset", "dataset.delete",
        ],
        "Push sync": [
            "registerDevice", "isDeviceRegistered", "subscribeAll", "RegistrationFailedException",
            "SubscribeFailedException", "AmazonClientException", "getPushSyncUpdate",
            "PushSyncUpdate", "getLastSyncCount", "payload.source", "payload.identityPoolId",
            "payload.identityId", "payload.datasetName", "payload.syncCount",
        ],
        "Configuration of DataStore for Swift": [
            "errorHandler", "conflictHandler(data, resolve)", "applyRemote", "retryLocal",
            "retry(model)", "syncInterval", "syncMaxRecords", "syncPageSize", "syncExpressions",
            "authModeStrategy", "disableSubscriptions", "syncExpression",
        ],
        "Configuration of DataStore for JavaScript": [
            "errorHandler", "conflictHandler", "DISCARD", "maxRecordsToSync", "syncPageSize",
            "fullSyncInterval", "syncExpressions", "authModeStrategyType", "authProviders",
            "storageAdapter",
        ],
        "Events and calls of DataStore": [
            "networkStatus", "subscriptionsEstablished", "syncQueriesStarted", "modelSynced",
            "syncQueriesReady", "ready", "outboxStatus", "outboxMutationEnqueued",
            "outboxMutationProcessed", "syncReceived", "conditionalSaveFailed", "observe",
            "observeQuery", "start", "stop", "clear",
        ],
        "Strategies and queries of AppSync": [
            "Auto Merge", "Optimistic Concurrency", "Custom Lambda", "strategy per model",
            "base query", "delta query",
        ],
    ]

    /// The names of the reference as it lists them, group by group. "Type.name" is the row of the
    /// name in the table of the type; a colon behind a name of Objective-C may be left out.
    static let reference: [String] = [
        // AWSCognitoDataset
        "conflictHandler", "datasetDeletedHandler", "datasetMergedHandler", "synchronizeRetries",
        "synchronizeOnWiFiOnly", "setString:forKey:", "stringForKey:", "synchronize",
        "synchronizeOnConnectivity", "subscribe", "unsubscribe", "getAllRecords", "getAll",
        "removeObjectForKey:", "recordForKey:", "clear", "size", "sizeForKey:", "syncPull:",
        "syncPush:",
        // Client and its types (all platforms)
        "AWSCognito.openOrCreateDataset", "AWSCognito.conflictHandler",
        "AWSCognito.datasetDeletedHandler", "AWSCognito.datasetMergedHandler", "AWSCognitoRecord",
        "AWSCognitoConflict", "AWSCognitoResolvedConflict", "AWSCognitoRecordConflictHandler",
        "AWSCognitoDatasetDeletedHandler", "DatasetMergeHandler", "resolveWithLocalRecord",
        "resolveWithRemoteRecord", "resolveWithValue", "getLocalRecord", "getRemoteRecord",
        "dataset.resolve", "CognitoSyncManager.openOrCreateDataset", "dataset.delete",
        // Notifications (Objective-C, Swift)
        "AWSCognitoDidStartSynchronizeNotification", "AWSCognitoDidEndSynchronizeNotification",
        "AWSCognitoDidFailToSynchronizeNotification", "AWSCognitoDidChangeRemoteValueNotification",
        "AWSCognitoDidChangeLocalValueFromRemoteNotification", "userInfo.dataset", "userInfo.keys",
        "userInfo.error",
        // Android
        "SyncCallback", "DefaultSyncCallback", "onSuccess", "onFailure", "onConflict",
        "onDatasetDeleted", "onDatasetsMerged", "DataStorageException", "SyncConflict",
        // JavaScript
        "onDatasetMerged", "callback(true)", "callback(false)",
        // Unity and Xamarin
        "OnSyncSuccess", "OnSyncFailure", "OnSyncConflict", "OnDatasetDeleted", "OnDatasetMerged",
        "SyncSuccessEvent", "SyncSuccessEventArgs", "SyncFailureEvent", "SyncFailureEventArgs",
        // Push sync
        "registerDevice", "isDeviceRegistered", "subscribeAll", "RegistrationFailedException",
        "SubscribeFailedException", "AmazonClientException", "getPushSyncUpdate", "PushSyncUpdate",
        "getLastSyncCount", "payload.source", "payload.identityPoolId", "payload.identityId",
        "payload.datasetName", "payload.syncCount",
        // Amplify DataStore / AppSync
        "errorHandler", "conflictHandler(data, resolve)", "applyRemote", "retryLocal",
        "retry(model)", "syncMaxRecords", "syncPageSize", "syncInterval", "syncExpression",
        "authModeStrategyType", "Auto Merge", "Optimistic Concurrency", "Custom Lambda",
        "strategy per model", "base query", "delta query",
    ]

    /// Names of the reference that the tables leave out.
    static func missing(in names: [String: [String]]) -> [String] {
        let all = Set(names.values.joined())
        return reference.filter { name in
            guard !all.contains(name) else { return false }
            let parts = name.split(separator: ".")
            let own = parts.count == 2 ? names[String(parts[0])] ?? [] : []
            return !own.contains { $0 == parts[1] || $0 == "\(parts[1]):" }
        }
    }
}
