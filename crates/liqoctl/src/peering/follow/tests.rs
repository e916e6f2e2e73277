use anyhow::anyhow;

use super::*;

#[tokio::test(start_paused = true)]
async fn an_api_server_may_restart_while_somebody_waits() {
    let mut patience = Patience::default();
    let failed = || Err::<(), _>(anyhow!("no answer"));
    assert!(patience.forgive(failed()).unwrap().is_none());
    tokio::time::advance(PATIENCE / 2).await;
    assert!(patience.forgive(failed()).unwrap().is_none());
    assert!(patience.forgive(Ok(())).unwrap().is_some(), "it answers again");
    tokio::time::advance(PATIENCE).await;
    assert!(patience.forgive(failed()).unwrap().is_none(), "counted from the first failure in a row");
    tokio::time::advance(PATIENCE).await;
    assert!(patience.forgive(failed()).is_err());
}
