(* A domain that is not the main one ends the program. *)

let allocate n = List.length (Sys.opaque_identity (List.init n (fun i -> string_of_int i)))

let () =
  Printf.printf "main %d\n%!" (allocate 60_000);
  let d =
    Domain.spawn (fun () ->
        Printf.printf "domain %d\n%!" (allocate 60_000);
        exit 11)
  in
  Domain.join d
