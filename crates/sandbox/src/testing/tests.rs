use std::fs::FileTimes;
use std::time::SystemTime;

use super::*;

#[test]
fn an_image_that_is_missing_or_older_than_its_binary_is_refused() {
    let target = std::env::temp_dir().join(format!("liqo-product-image-{}", std::process::id()));
    let image = target.join("image").join(format!("liqo-{}.tar", env!("CARGO_PKG_VERSION")));
    for file in [&image, &target.join("release/liqo")] {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
    }
    let reason = || product_image_in(&target).unwrap_err();
    assert!(reason().contains("make image"), "{}", reason());

    fs::write(&image, "image").unwrap();
    assert_eq!(product_image_in(&target).as_ref(), Ok(&image), "an image from elsewhere has no binary");

    fs::write(target.join("release/liqo"), "binary").unwrap();
    let set = |time| fs::File::options().write(true).open(&image).unwrap().set_times(time).unwrap();
    set(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH));
    assert!(reason().contains("older"), "{}", reason());
    set(FileTimes::new().set_modified(SystemTime::now() + Duration::from_secs(60)));
    assert_eq!(product_image_in(&target), Ok(image));
    fs::remove_dir_all(target).unwrap();
}
